-- How approved rows reach the sender. A chunk is taken on a short lease; losing, repeating or delaying a message changes timing only.

-- due: announce chunks that are due, quiet and may send; at most so many, the longest waiting first, and few of each plan, since
-- whoever comes for one goes on to the next of the same plan by itself. A big plan leaves room for a small one behind it.
UPDATE approvals_chunk SET announced_at = now()
WHERE id IN (
    SELECT c.id
    FROM approvals_chunk c
    WHERE c.id IN (
        SELECT ranked.id
        FROM (
            SELECT c.id, c.due_at, row_number() OVER (PARTITION BY c.plan_id ORDER BY c.lo) AS n
            FROM approvals_chunk c JOIN approvals_sending p ON p.id = c.plan_id
            WHERE c.due_at <= now()
              AND (c.leased_until IS NULL OR c.leased_until < now())
              AND (c.announced_at IS NULL OR c.announced_at < now() - interval '10 seconds')
        ) AS ranked
        WHERE ranked.n <= %(of_one_plan)s
        ORDER BY ranked.due_at, ranked.id
        LIMIT %(most)s
    )
    FOR UPDATE SKIP LOCKED
)
RETURNING id

-- channel: whose turn a chunk wants.
SELECT p.channel_id FROM approvals_chunk c JOIN approvals_plan p ON p.id = c.plan_id WHERE c.id = %(chunk_id)s

-- take: one chunk, if it is due, may send, and nobody has it. Takes are counted until it is put back: a holder that vanished does not.
UPDATE approvals_chunk c
SET leased_by = %(holder)s, leased_until = now() + make_interval(secs => %(lease)s), takes = least(c.takes + 1, 1000)
FROM approvals_sending p
WHERE p.id = c.plan_id
  AND c.id = (
    SELECT id FROM approvals_chunk
    WHERE id = %(chunk_id)s AND due_at <= now() AND (leased_until IS NULL OR leased_until < now())
    FOR UPDATE SKIP LOCKED
  )
RETURNING c.plan_id, c.id, c.lo, c.hi, c.takes, c.trying, p.workspace_id, p.channel_id, p.tool, p.event_id, p.scope, p.run_id

-- take_next: another chunk of the plan at hand, so that a worker does not stand still while the last calls of one come back.
UPDATE approvals_chunk
SET leased_by = %(holder)s, leased_until = now() + make_interval(secs => %(lease)s), takes = least(takes + 1, 1000)
WHERE id = (
    SELECT c.id FROM approvals_chunk c JOIN approvals_sending p ON p.id = c.plan_id
    WHERE c.plan_id = %(plan_id)s AND c.due_at <= now() AND (c.leased_until IS NULL OR c.leased_until < now())
    ORDER BY c.lo LIMIT 1
    FOR UPDATE OF c SKIP LOCKED
)
RETURNING id, lo, hi, takes, trying

-- renew: the holder of chunks says that it is alive.
UPDATE approvals_chunk SET leased_until = now() + make_interval(secs => %(lease)s)
WHERE plan_id = %(plan_id)s AND leased_by = %(holder)s

-- rows: the next rows of a chunk that may be sent now. Stop, pause and expiry are looked at here, between windows.
SELECT r.position, r.key, r.epoch, r.target, r.subject, r.text, r.html, r.payload, r.amount_minor, r.content_digest
FROM approvals_outlook o JOIN approvals_row r ON r.id = o.id JOIN approvals_sending p ON p.id = o.plan_id
WHERE o.plan_id = %(plan_id)s AND o.position > %(after)s AND o.position <= %(hi)s AND o.send_at <= now()
ORDER BY o.position
LIMIT %(most)s

-- first: the next row of a chunk that may be sent now, without its content.
SELECT r.position, r.key, r.epoch, r.target, r.amount_minor, r.content_digest
FROM approvals_outlook o JOIN approvals_row r ON r.id = o.id JOIN approvals_sending p ON p.id = o.plan_id
WHERE o.plan_id = %(plan_id)s AND o.position > %(after)s AND o.position <= %(hi)s AND o.send_at <= now()
ORDER BY o.position
LIMIT 1

-- try: this row is about to be read alone. Committed before, so that whoever comes after a death knows where it was, and how often.
UPDATE approvals_chunk SET trying = %(position)s, takes = CASE WHEN trying = %(position)s THEN takes ELSE 2 END
WHERE id = %(chunk_id)s AND leased_by = %(holder)s

-- survived: it was read, and its reader lives: whatever ends us from here on was not this row.
UPDATE approvals_chunk SET trying = NULL WHERE id = %(chunk_id)s AND leased_by = %(holder)s

-- leave: the chunks of a turn that the database's going away ended. That this holder leaves is no vanishing.
UPDATE approvals_chunk SET leased_by = '', leased_until = NULL, announced_at = NULL, trying = NULL, takes = greatest(takes - 1, 0)
WHERE plan_id = %(plan_id)s AND leased_by = %(holder)s

-- put_back: the chunks of a turn are free again, each due when the first of its rows wants to be sent or looked at, and the channel's
-- rate allows; never, once all are final. A row whose key is held is looked at again soon while a call is out, seldom while a person has it.
UPDATE approvals_chunk c
SET leased_by = '', leased_until = NULL, announced_at = NULL, takes = 0, trying = NULL,
    due_at = (
        SELECT greatest(wanted.at, wanted.next_slot)
        FROM (
            SELECT ch.next_slot, min(CASE o.held
                WHEN 'pending' THEN now() + make_interval(secs => %(soon)s)
                WHEN 'unknown' THEN now() + make_interval(secs => %(seldom)s)
                WHEN 'stranded' THEN now() + make_interval(secs => %(seldom)s)
                ELSE o.send_at END) AS at
            FROM approvals_plan p JOIN effects_channel ch ON ch.id = p.channel_id JOIN approvals_outlook o ON o.plan_id = p.id
            WHERE p.id = c.plan_id AND p.state = 'approved' AND p.expires_at > now() AND o.position BETWEEN c.lo AND c.hi
            GROUP BY ch.next_slot
        ) AS wanted
        WHERE wanted.at IS NOT NULL)
WHERE c.plan_id = %(plan_id)s AND c.leased_by = %(holder)s
RETURNING id, due_at IS NOT NULL AND due_at <= now() AND EXISTS (SELECT FROM approvals_sending p WHERE p.id = plan_id)
