-- What the roles of web and worker may do, and nothing else. `manage.py roles` runs this as the owner of the tables, in one transaction:
-- it takes everything away, then gives what each statement of theirs needs, by column where a table has two writers.
-- What grants cannot say (who may take which arrow) triggers say, and they ask for these grants: see effects/sql/schema.sql.

-- Nobody but the owner makes objects here, not even temporary ones: a table of the same name could stand before one of ours.
REVOKE CREATE, TEMPORARY ON DATABASE {database} FROM PUBLIC, {web}, {worker};
REVOKE CREATE ON SCHEMA public FROM PUBLIC, {web}, {worker};

-- A clean slate: column rights go with the rights on their table.
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC, {web}, {worker};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM PUBLIC, {web}, {worker};

-- Triggers call these functions without asking; nobody else calls them, nor ties them to a table of their own.
REVOKE ALL ON FUNCTION
    entry_is_written_once(), effect_is_born_pending(), effects_belong_to_their_channel(), refuse(), final_effect_never_changes(),
    effect_leaves_a_trail(), epoch_supersedes_a_done_effect(), written_once(), plan_follows_its_arrows(), row_stays_as_proposed(),
    rows_come_into_a_draft(), decision_has_four_eyes(), approval_rests_on_a_decision(), callback_speaks_of_its_channel(),
    opt_out_is_only_lifted()
FROM PUBLIC, {web}, {worker};

-- The way in.
GRANT CONNECT ON DATABASE {database} TO {web}, {worker};
GRANT USAGE ON SCHEMA public TO {web}, {worker};

-- Web: sign-in. A person changes their own password and address; people, memberships, workspaces and tokens are added by commands.
GRANT SELECT ON accounts_workspace, accounts_membership TO {web};
GRANT SELECT, UPDATE ON accounts_user TO {web};
GRANT SELECT, UPDATE (last_used_at) ON accounts_token TO {web};
GRANT SELECT, INSERT, UPDATE, DELETE ON django_session, account_emailaddress, account_emailconfirmation TO {web};
GRANT SELECT ON django_migrations, django_content_type, auth_permission, auth_group, auth_group_permissions TO {web};

-- Web: agents record their runs; an answer to an Idempotency-Key is kept as it was given.
GRANT SELECT, INSERT, UPDATE (state, reason, tools, ended_at) ON runs_run TO {web};
GRANT SELECT, INSERT ON runs_answer TO {web};

-- Web: agents load and propose, people decide. Drafts take their epochs and rows; the text of neither is ever written twice.
GRANT SELECT, INSERT, UPDATE (state, row_count, checks, digest, proposed_at, decided_at, expires_at) ON approvals_plan TO {web};
GRANT SELECT, INSERT, UPDATE (epoch, excluded_reason) ON approvals_row TO {web};
GRANT SELECT, INSERT ON approvals_decision TO {web};
GRANT SELECT, INSERT, UPDATE (due_at, announced_at) ON approvals_chunk TO {web};
GRANT SELECT ON approvals_sending, approvals_outlook, approvals_outcome, approvals_elsewhere, approvals_covered, approvals_unwanted,
    approvals_left_out TO {web};
GRANT SELECT, INSERT, UPDATE (lifted_by, lifted_at) ON approvals_optout TO {web};

-- Web: the human's pen. It rules on effects and never makes one; it opens epochs, and starts and lifts pauses.
GRANT SELECT,
    UPDATE (state, receipt, reason, evidence, settled_by, settled_at, ruled, retry_at, look_up_at, superseded_by_id)
    ON effects_effect TO {web};
GRANT SELECT, INSERT ON effects_epoch, effects_lookup TO {web};
GRANT SELECT, INSERT, UPDATE (lifted_by, lifted_at) ON effects_pause TO {web};
GRANT SELECT ON effects_channel, effects_keptreply, effects_challenge, effects_event TO {web};

-- Web: the door of callbacks. It keeps what a provider signed and notes who has seen it; what it comes to is for the worker to say.
GRANT SELECT,
    INSERT (workspace_id, channel_id, event_id, effect_id, kind, exact, receipt, reason, said_at, raw),
    UPDATE (seen_by, seen_at, seen_reason)
    ON effects_callback TO {web};

-- Web: the record, for reading and adding to.
GRANT SELECT, INSERT ON audit_entry TO {web};

-- Worker: the machine's pen (effects/sql/pen.sql). It reserves and settles; `ruled`, `superseded_by_id` and epochs are out of its reach.
GRANT SELECT,
    INSERT (workspace_id, channel_id, key, epoch, attempt, state, tool, target, amount_minor, event_id, scope, content_digest, plan_id,
            run_id, worker, deadline, receipt, reason, evidence, settled_by),
    UPDATE (state, receipt, reason, settled_by, settled_at, retry_at, look_up_at)
    ON effects_effect TO {worker};
GRANT SELECT, INSERT (effect_id, kind, raw, note) ON effects_keptreply TO {worker};
GRANT SELECT,
    INSERT (effect_id, by, kind, raw, note, kept_at), UPDATE (by, begun_at, kind, raw, note, kept_at) ON effects_challenge TO {worker};
GRANT INSERT (effect_id, by, answer, receipt, raw) ON effects_lookup TO {worker};
GRANT SELECT, INSERT (workspace_id, subject, reason, started_by, until, lifted_by) ON effects_pause TO {worker};
GRANT SELECT, UPDATE (next_slot, swept_until) ON effects_channel TO {worker};
GRANT SELECT ON effects_epoch TO {worker};
GRANT SELECT, UPDATE (due_at, applied_at, outcome) ON effects_callback TO {worker};

-- Worker: dispatch (approvals/sql/dispatch.sql). It leases chunks, reads frozen rows, and closes plans that nobody decided on in time.
GRANT SELECT, UPDATE (due_at, leased_by, leased_until, announced_at, takes, trying) ON approvals_chunk TO {worker};
GRANT SELECT, UPDATE (state, decided_at) ON approvals_plan TO {worker};
GRANT SELECT ON approvals_row, approvals_sending, approvals_outlook TO {worker};

-- Worker: it says in the record that a plan expired, and reads back only the number and time of that entry.
GRANT INSERT, SELECT (id, at) ON audit_entry TO {worker};
