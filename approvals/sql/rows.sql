-- Rows of a plan by the word under which the closing sum counts them, and all that is known of them, a page at a time.

-- by_text: positions of the rows whose target holds a text, in order.
SELECT position FROM approvals_row
WHERE plan_id = %(plan_id)s AND position > %(after)s
  AND strpos(lower(target || ' ' || target_typed), lower(%(text)s)) > 0
ORDER BY position
LIMIT %(most)s

-- of_a_state: how many effects of this plan are in that state, as far as it matters.
SELECT count(*) FROM (SELECT FROM effects_effect WHERE plan_id = %(plan_id)s AND state = %(figure)s LIMIT %(many)s) found

-- positions: of the rows under one word, in order. Few of a hundred thousand are unknown, covered or left out: these are looked for first,
-- and each by the index that has them. Where many are in that state, rows are asked in their order until a page is full.
SELECT position
FROM approvals_outcome
WHERE plan_id = %(plan_id)s AND position > %(after)s
  AND (%(figure)s <> 'excluded' OR position = ANY (ARRAY(SELECT position FROM approvals_left_out WHERE plan_id = %(plan_id)s)))
  AND (%(figure)s <> 'covered' OR position = ANY (ARRAY(SELECT position FROM approvals_covered WHERE plan_id = %(plan_id)s)))
  AND (NOT %(few)s OR key = ANY (ARRAY(
        SELECT key FROM effects_effect
        WHERE id = ANY (ARRAY(SELECT id FROM effects_effect WHERE plan_id = %(plan_id)s AND state = %(figure)s)))))
  AND (%(text)s = '' OR strpos(lower(target || ' ' || target_typed), lower(%(text)s)) > 0)
  AND figure = %(figure)s
ORDER BY position
LIMIT %(most)s

-- waiting: of the rows that wait, in order. While a plan goes out they stand behind all that went, so rows whose key an effect of the plan
-- holds are taken away as a set first, by what two indexes know: a grouping, which costs the same whatever the planner expects. What is
-- left is asked in order, row by row, until a page is full.
WITH left_over AS MATERIALIZED (
    SELECT unnest(array_agg(position)) AS position
    FROM (
        SELECT key, position FROM approvals_row WHERE plan_id = %(plan_id)s AND position > %(after)s
        UNION ALL
        SELECT key, NULL FROM effects_effect WHERE plan_id = %(plan_id)s AND state IN ('done', 'pending', 'unknown', 'stranded')
    ) known
    GROUP BY key
    HAVING bool_and(position IS NOT NULL)
)
SELECT l.position
FROM (SELECT position FROM left_over ORDER BY position) l
CROSS JOIN LATERAL (
    SELECT figure, target, target_typed FROM approvals_outcome
    WHERE plan_id = %(plan_id)s AND position = l.position OFFSET 0
) o
WHERE o.figure = 'waiting' AND (%(text)s = '' OR strpos(lower(o.target || ' ' || o.target_typed), lower(%(text)s)) > 0)
ORDER BY l.position
LIMIT %(most)s

-- whole: the next rows with their content and what became of each, as an export tells them.
SELECT position, target_typed, subject, text, html, payload, amount_minor, record, target, key, epoch, figure, attempt, receipt,
       CASE WHEN excluded_reason <> '' THEN excluded_reason ELSE reason END
FROM approvals_outcome
WHERE plan_id = %(plan_id)s AND position > %(after)s
ORDER BY position
LIMIT %(most)s
