-- Rows of a plan by the word under which the closing sum counts them, and all that is known of them, a page at a time.

-- by_text: positions of the rows whose target holds a text, in order.
SELECT position FROM approvals_row
WHERE plan_id = %(plan_id)s AND position > %(after)s
  AND strpos(lower(target || ' ' || target_typed), lower(%(text)s)) > 0
ORDER BY position
LIMIT %(most)s

-- of_a_state: how many effects of this plan are in that state, as far as it matters.
SELECT count(*) FROM (SELECT FROM effects_effect WHERE plan_id = %(plan_id)s AND state = %(figure)s LIMIT %(many)s) found

-- under: of the rows under one word, in order. Candidates are asked one by one until a page is full, so what a page costs hangs on where
-- one begins to look and on nothing that the planner believes of a plan: of one that was loaded just now it believes nothing that is true.
WITH candidates AS MATERIALIZED ({candidates})
SELECT c.position
FROM (SELECT DISTINCT position FROM candidates WHERE position > %(after)s ORDER BY position) c
CROSS JOIN LATERAL (
    SELECT figure, target, target_typed FROM approvals_outcome WHERE plan_id = %(plan_id)s AND position = c.position OFFSET 0
) o
WHERE o.figure = %(figure)s AND (%(text)s = '' OR strpos(lower(o.target || ' ' || o.target_typed), lower(%(text)s)) > 0)
ORDER BY c.position
LIMIT %(most)s

-- covered: candidates by the effects of others.
SELECT position FROM approvals_covered WHERE plan_id = %(plan_id)s

-- excluded: candidates by what was left out, and by who opted out.
SELECT position FROM approvals_left_out WHERE plan_id = %(plan_id)s

-- few: candidates by the few effects of the plan that are in this state.
SELECT r.position
FROM (
    SELECT DISTINCT key FROM effects_effect
    WHERE id = ANY (ARRAY(SELECT id FROM effects_effect WHERE plan_id = %(plan_id)s AND state = %(figure)s))
) own
CROSS JOIN LATERAL (SELECT position FROM approvals_row WHERE plan_id = %(plan_id)s AND key = own.key OFFSET 0) r

-- many: any row may be.
SELECT generate_series(%(after)s + 1, row_count) AS position FROM approvals_plan WHERE id = %(plan_id)s

-- waiting: while a plan goes out, what waits is behind all that went: in chunks that have more to do, or its key is somebody else's affair.
-- Of a plan that does not go out, any row may wait.
SELECT generate_series(greatest(c.lo, %(after)s + 1), c.hi) AS position
FROM approvals_chunk c JOIN approvals_plan p ON p.id = c.plan_id
WHERE c.plan_id = %(plan_id)s AND c.due_at IS NOT NULL AND p.state = 'approved' AND p.expires_at > now()
UNION ALL
SELECT position FROM approvals_elsewhere WHERE plan_id = %(plan_id)s
UNION ALL
SELECT generate_series(%(after)s + 1, row_count) FROM approvals_plan
WHERE id = %(plan_id)s AND NOT (state = 'approved' AND expires_at > now())

-- whole: the next rows with their content and what became of each, as an export tells them.
SELECT position, target_typed, subject, text, html, payload, amount_minor, record, target, key, epoch, figure, attempt, receipt,
       CASE WHEN excluded_reason <> '' THEN excluded_reason ELSE reason END
FROM approvals_outcome
WHERE plan_id = %(plan_id)s AND position > %(after)s
ORDER BY position
LIMIT %(most)s
