-- The machine's pen: every statement by which a worker or the sweeper writes to the ledger.
-- Each names the state it leaves, looks rows up by key or id only, and says how many rows it moved.
-- Lists travel in binary (%b): as text each element would be searched for characters to escape.
-- `state || ''` hides a state from the planner: it must come by id, not walk the index of everybody's open rows.

-- reserve: arrow a, up to a window of rows in one commit, before any call. Who loses a key gets no row back.
INSERT INTO effects_effect (
    workspace_id, channel_id, key, epoch, attempt, state, tool, target, amount_minor, event_id, scope,
    content_digest, plan_id, run_id, worker, deadline, receipt, reason, evidence, settled_by
)
SELECT
    %(workspace_id)s, %(channel_id)s, c.key, c.epoch,
    1 + coalesce((SELECT max(e.attempt) FROM effects_effect e WHERE e.key = c.key AND e.epoch = c.epoch), 0),
    'pending', %(tool)s, c.target, c.amount_minor, %(event_id)s, %(scope)s,
    c.content_digest, %(plan_id)s, %(run_id)s, %(worker)s, statement_timestamp() + make_interval(secs => %(deadline)s), '', '', '', ''
FROM unnest(%(keys)b::text[], %(epochs)b::int[], %(targets)b::text[], %(amounts)b::bigint[], %(digests)b::text[])
    AS c (key, epoch, target, amount_minor, content_digest)
ON CONFLICT DO NOTHING
RETURNING id, key, epoch, attempt

-- keep: the raw reply, committed before anybody reads it. A reply that comes after the sweeper spoke is kept all the same.
INSERT INTO effects_keptreply (effect_id, kind, raw, note)
SELECT * FROM unnest(%(ids)b::bigint[], %(kinds)b::text[], %(raws)b::bytea[], %(notes)b::text[])
ON CONFLICT DO NOTHING

-- settle: arrows b, c, d, e by the worker that made the call, or by the sweeper that read a kept reply again. Of the attempts allowed,
-- only those count that left this machine.
UPDATE effects_effect e
SET state = v.state, receipt = v.receipt, reason = v.reason, settled_by = %(by)s, settled_at = now(),
    retry_at = CASE WHEN v.retry_in IS NOT NULL AND (NOT v.counts OR %(max_attempts)s > (
                        SELECT count(*) FROM effects_effect o JOIN effects_keptreply k ON k.effect_id = o.id
                        WHERE o.key = e.key AND o.epoch = e.epoch AND k.kind <> 'not sent'))
                    THEN now() + make_interval(secs => least(v.retry_in * power(2, least(e.attempt, 12) - 1), 3600)) END,
    look_up_at = CASE WHEN v.state = 'unknown' AND %(can_look_up)s THEN now() END
FROM unnest(%(ids)b::bigint[], %(states)b::text[], %(receipts)b::text[], %(reasons)b::text[], %(retries)b::float8[], %(counts)b::bool[])
    AS v (id, state, receipt, reason, retry_in, counts)
WHERE e.id = v.id AND e.state || '' = 'pending'

-- await: the provider took it to decide later. No arrow: the row stays pending, and is looked up until the provider has decided.
UPDATE effects_effect e
SET reason = v.reason, look_up_at = now() + make_interval(secs => %(seconds)s)
FROM unnest(%(ids)b::bigint[], %(reasons)b::text[]) AS v (id, reason)
WHERE e.id = v.id AND e.state || '' = 'pending' AND e.look_up_at IS NULL

-- begin_challenge: the one answer to what the provider asked is ours to give, for so many seconds more. Committed before its first byte.
-- Given again only where nothing had left the machine that tried.
INSERT INTO effects_challenge (effect_id, by, kind, raw, note)
SELECT k.effect_id, %(by)s, '', '', ''
FROM effects_keptreply k JOIN effects_effect e ON e.id = k.effect_id
WHERE k.effect_id = %(id)s AND e.state || '' = 'pending' AND k.at + make_interval(secs => %(within)s) > now()
ON CONFLICT (effect_id) DO UPDATE SET by = excluded.by, begun_at = now(), kind = '', note = '' WHERE effects_challenge.kind = 'not sent'
RETURNING (
    SELECT extract(epoch FROM k.at + make_interval(secs => %(within)s) - now())::float8
    FROM effects_keptreply k WHERE k.effect_id = effects_challenge.effect_id
)

-- keep_challenge: the raw reply to that answer, committed before anybody reads it.
UPDATE effects_challenge SET kind = %(kind)s, raw = %(raw)s, note = %(note)s, kept_at = now()
WHERE effect_id = %(id)s AND kind = ''

-- forgo_challenge: its time is over, and nothing of an answer has left a machine of ours; from here nobody may begin.
INSERT INTO effects_challenge (effect_id, by, kind, raw, note, kept_at)
SELECT e.id, %(by)s, %(kind)s, '', %(note)s, now() FROM effects_effect e WHERE e.id = %(id)s AND e.state || '' = 'pending'
ON CONFLICT (effect_id) DO UPDATE SET kept_at = now() WHERE effects_challenge.kind = 'not sent'

-- overdue: pending rows that nobody is working on any more, and open rows whose next look-up is due; at most so many of each channel.
SELECT id, channel_id
FROM (
    SELECT id, channel_id, row_number() OVER (PARTITION BY channel_id ORDER BY id) AS n
    FROM (
        SELECT id, channel_id FROM effects_effect
        WHERE state = 'pending' AND coalesce(look_up_at, deadline) <= now()
        UNION ALL
        SELECT id, channel_id FROM effects_effect WHERE state = 'unknown' AND look_up_at <= now()
    ) AS due
) AS ranked
WHERE n <= %(most)s

-- take_sweep: one sweeper a channel, over all workers; for a while only, since a stopped one says nothing. Two would ask twice, no worse.
UPDATE effects_channel SET swept_until = now() + make_interval(secs => %(seconds)s)
WHERE id = %(channel_id)s AND swept_until <= now()

-- leave_sweep: and its end.
UPDATE effects_channel SET swept_until = now() WHERE id = %(channel_id)s

-- read: rows that nobody is working on, with the reply that was kept, if one was.
SELECT e.id, e.state, e.channel_id, e.key, e.epoch, e.deadline, e.settled_at, k.kind, k.raw, k.note, now(), c.begun_at, c.kind, c.raw, c.note
FROM effects_effect e LEFT JOIN effects_keptreply k ON k.effect_id = e.id LEFT JOIN effects_challenge c ON c.effect_id = e.id
WHERE e.id = ANY(%(ids)s) AND e.state || '' IN ('pending', 'unknown')

-- prove: arrows b and f. A look-up found the effect at the provider, so it happened.
UPDATE effects_effect
SET state = 'done', receipt = %(receipt)s, reason = 'found by look-up', settled_by = %(by)s, settled_at = now(), look_up_at = NULL
WHERE id = %(id)s AND state = %(state)s

-- refuse: arrow c. The provider decided later, and said no: nothing was created.
UPDATE effects_effect
SET state = 'failed', reason = 'accepted, then refused by the provider', settled_by = %(by)s, settled_at = now(), look_up_at = NULL
WHERE id = %(id)s AND state = 'pending'

-- ask_again: nothing was found; that is no proof, so the provider is asked again inside the settle window.
UPDATE effects_effect
SET look_up_at = now() + make_interval(secs => %(seconds)s)
WHERE id = %(id)s AND state = %(state)s

-- stop_asking: the settle window is over for an unknown row; from here a person has it.
UPDATE effects_effect SET look_up_at = NULL WHERE id = %(id)s AND state = 'unknown'

-- give_up: arrow d. Nobody can know: a person is asked. A reply that was kept meanwhile is read first, at the next sweep; that of an
-- awaited row was read: it said "later".
UPDATE effects_effect
SET state = 'unknown', reason = %(reason)s, settled_by = %(by)s, settled_at = now(), look_up_at = NULL
WHERE id = %(id)s AND state = 'pending' AND (%(awaited)s OR NOT EXISTS (SELECT FROM effects_keptreply WHERE effect_id = %(id)s))

-- note_look_up: one question to the provider and its answer, kept as evidence.
INSERT INTO effects_lookup (effect_id, by, answer, receipt, raw)
VALUES (%(id)s, %(by)s, %(answer)s, %(receipt)s, %(raw)s)

-- take_slots: the next n slots of a channel with a rate, unless the first is far; the wait until it, in seconds.
UPDATE effects_channel
SET next_slot = greatest(next_slot, clock_timestamp()) + make_interval(secs => %(n)s / %(rate)s)
WHERE id = %(channel_id)s AND next_slot <= clock_timestamp() + make_interval(secs => %(within)s)
RETURNING extract(epoch FROM next_slot - make_interval(secs => %(n)s / %(rate)s) - clock_timestamp())::float8

-- rest: a channel that was told to wait, unless it rests about as long already.
INSERT INTO effects_pause (workspace_id, subject, reason, started_by, until, lifted_by)
SELECT %(workspace_id)s, %(subject)s::text, %(reason)s, %(by)s, now() + make_interval(secs => %(seconds)s::float8), ''
WHERE NOT EXISTS (
    SELECT FROM effects_pause
    WHERE subject = %(subject)s::text AND lifted_at IS NULL
      AND (until IS NULL OR until >= now() + make_interval(secs => 0.9 * %(seconds)s::float8))
)

-- held: is any of these subjects paused?
SELECT EXISTS (
    SELECT FROM effects_pause
    WHERE subject = ANY(%(subjects)s) AND lifted_at IS NULL AND (until IS NULL OR until > now())
)

-- due_callbacks: kept callbacks that nobody has applied, with the effect that each speaks of, and what its call was answered while it is pending.
SELECT c.id, c.channel_id, c.effect_id, c.kind, c.receipt, c.exact, e.state, e.deadline <= now(), k.kind, k.raw, k.note
FROM effects_callback c
JOIN effects_effect e ON e.id = c.effect_id
LEFT JOIN effects_keptreply k ON k.effect_id = e.id AND e.state || '' = 'pending'
WHERE c.due_at <= now()
ORDER BY c.due_at, c.id
LIMIT %(most)s

-- settle_by_callback: arrows b, c and f. The provider called back with proof: the effect and the callback move together, or neither does.
-- A reply that was kept meanwhile is read first, unless it said "later".
WITH moved AS (
    UPDATE effects_effect
    SET state = %(state)s, receipt = %(receipt)s, reason = %(reason)s, settled_by = %(by)s, settled_at = now(), look_up_at = NULL
    WHERE id = %(id)s AND state || '' = %(seen)s
      AND (%(seen)s = 'unknown' OR %(awaited)s OR NOT EXISTS (SELECT FROM effects_keptreply WHERE effect_id = %(id)s))
      AND EXISTS (SELECT FROM effects_callback WHERE id = %(callback)s AND applied_at IS NULL)
    RETURNING id
)
UPDATE effects_callback SET outcome = 'settled', applied_at = now(), due_at = NULL
WHERE id = %(callback)s AND applied_at IS NULL AND EXISTS (SELECT FROM moved)

-- conclude_callback: what it came to where the effect stays as it is. The same news told again is no more news.
UPDATE effects_callback c
SET applied_at = now(), due_at = NULL,
    outcome = CASE WHEN %(outcome)s = 'contrary' AND EXISTS (
        SELECT FROM effects_callback o WHERE o.effect_id = c.effect_id AND o.kind = c.kind AND o.outcome = 'contrary'
    ) THEN 'repeated' ELSE %(outcome)s END
WHERE c.id = %(callback)s AND c.applied_at IS NULL

-- put_off_callback: its effect is open, and it is no proof; looked at again, the less often the longer that lasts.
UPDATE effects_callback
SET due_at = now() + make_interval(secs => least(60, greatest(2, 0.25 * extract(epoch FROM now() - received_at)))::float8)
WHERE id = %(callback)s AND applied_at IS NULL
