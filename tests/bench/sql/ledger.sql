-- quiet: this session fires no trigger and asks no foreign key; only a superuser's may.
SET session_replication_role = replica

-- plans: many, in every state. Their rows are not made, but for the first plan.
INSERT INTO approvals_plan (workspace_id, run_id, title, rationale, tool, channel_id, event_id, scope, currency, state, version, token_id,
                            author_id, row_count, digest, checks, proposed_at, decided_at, expires_at)
SELECT %(workspace)s, n::text, 'Plan ' || n, repeat('It is spring. ', 20), 'send_email', %(channel)s, 'event-' || n, '', '',
       CASE WHEN n <= 20 OR n %% 2 = 0 THEN 'approved' WHEN n %% 400 = 1 THEN 'proposed' WHEN n %% 7 = 0 THEN 'rejected'
            WHEN n %% 11 = 0 THEN 'expired' WHEN n = 5001 THEN 'changes_requested' ELSE 'withdrawn' END,
       1, %(token)s, %(author)s, 100000, 'sha256:' || n, '[]', now(), now(), now() + interval '1 day'
FROM generate_series(1, %(plans)s) n

-- runs: two of three finished, few failed.
INSERT INTO runs_run (workspace_id, token_id, agent, event_id, state, reason, started_at, ended_at)
SELECT %(workspace)s, %(token)s, 'agent ' || n %% 50, 'event-' || n, CASE WHEN n %% 5000 = 1 THEN 'failed' ELSE 'finished' END, '', now(), now()
FROM generate_series(1, %(runs)s) n

-- effects: most are done, some failed, few need a person.
INSERT INTO effects_effect (workspace_id, channel_id, key, epoch, attempt, state, tool, target, amount_minor, event_id, scope, content_digest,
                            plan_id, run_id, worker, reserved_at, deadline, receipt, reason, evidence, settled_by, settled_at)
SELECT CASE WHEN n %% 10 = 0 THEN %(other)s ELSE %(workspace)s END, CASE WHEN n %% 10 = 0 THEN %(others_channel)s ELSE %(channel)s END,
       'v1:' || encode(sha256(n::text::bytea), 'hex'), 0, 1, state, 'send_email', 'customer' || n || '@readers.example', NULL,
       'event-' || 1 + n / 100000, '', 'sha256:' || encode(sha256(n::text::bytea), 'hex'),
       CASE WHEN n %% 10 = 0 THEN NULL ELSE %(first_plan)s + n / 100000 END,
       (1 + n / 1000)::text, 'a worker', now(), now() + interval '1 minute', CASE state WHEN 'done' THEN 'receipt-' || n ELSE '' END,
       CASE state WHEN 'done' THEN '' ELSE 'the provider said so' END, '', CASE state WHEN 'pending' THEN '' ELSE 'a worker' END,
       CASE state WHEN 'pending' THEN NULL ELSE now() END
FROM (
    SELECT n, CASE WHEN n %% 50 = 7 THEN 'failed' WHEN n %% 5000 = 1 THEN 'unknown' WHEN n %% 20000 = 2 THEN 'stranded'
                   WHEN n %% 100000 = 3 THEN 'revoked' WHEN n >= %(effects)s - 500 THEN 'pending' ELSE 'done' END AS state
    FROM generate_series(0, %(effects)s - 1) n
) made

-- look_ups: ten questions for each unknown effect.
INSERT INTO effects_lookup (effect_id, by, answer, receipt, raw)
SELECT e.id, 'sweeper', 'absent', '', '\x'::bytea FROM effects_effect e, generate_series(1, 10) WHERE e.state = 'unknown'

-- epochs: a person let some happen again.
INSERT INTO effects_epoch (workspace_id, key, epoch, supersedes_id, opened_by_id, reason)
SELECT workspace_id, key, 1, id, %(author)s, 'Wrong prices.' FROM effects_effect WHERE state = 'done' AND id %% 200 = 0

-- entries: the record of all this.
INSERT INTO audit_entry (workspace_id, actor_kind, actor_id, actor_name, address, act, object_kind, object_id, object_name, reason,
                         before, after, digest)
SELECT %(workspace)s, 'human', %(author)s, 'Bob <bob@bench.example>', '127.0.0.1',
       CASE WHEN n %% 50000 = 1 THEN 'plan stopped' ELSE 'effect resolved' END, CASE WHEN n %% 50000 = 1 THEN 'plan' ELSE 'effect' END, n,
       'customer' || n || '@readers.example', 'It is in the mailbox.', '{"state": "unknown"}', '{"state": "done"}', ''
FROM generate_series(1, %(entries)s) n

-- rows: of the first plan, a letter for each of its effects.
INSERT INTO approvals_row (plan_id, position, target_typed, target, key, epoch, subject, text, html, content_digest, excluded_reason)
SELECT plan_id, row_number() OVER (ORDER BY id), target, target, key, 0, 'Good news', repeat('Dear you. ', 60), '', content_digest, ''
FROM effects_effect WHERE plan_id = %(first_plan)s
