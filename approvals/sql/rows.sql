-- Rows of a plan by the word under which the closing sum counts them: the same reading as counts.sql, row by row.

-- of_a_state: how many effects of this plan are in that state, as far as it matters.
SELECT count(*) FROM (SELECT FROM effects_effect WHERE plan_id = %(plan_id)s AND state = %(figure)s LIMIT %(many)s) found

-- positions: of the rows under one word, in order. Few of a hundred thousand are unknown, covered or left out: these are looked for first,
-- and each by the index that has them. Where many are in that state, or wait, rows are asked in their order until a page is full.
SELECT r.position
FROM approvals_row r
LEFT JOIN LATERAL (
    SELECT e.state, e.plan_id FROM effects_effect e
    WHERE e.key = r.key AND e.epoch = r.epoch
    ORDER BY e.state IN ('failed', 'revoked'), e.plan_id IS DISTINCT FROM r.plan_id, e.attempt DESC
    LIMIT 1
) telling ON true
WHERE r.plan_id = %(plan_id)s AND r.position > %(after)s
  AND (%(figure)s <> 'excluded' OR r.excluded_reason <> '')
  AND (%(figure)s <> 'covered' OR r.position = ANY (ARRAY(SELECT position FROM approvals_covered WHERE plan_id = %(plan_id)s)))
  AND (NOT %(few)s OR r.key = ANY (ARRAY(
        SELECT key FROM effects_effect
        WHERE id = ANY (ARRAY(SELECT id FROM effects_effect WHERE plan_id = %(plan_id)s AND state = %(figure)s)))))
  AND (%(text)s = '' OR strpos(lower(r.target), lower(%(text)s)) > 0 OR strpos(lower(r.target_typed), lower(%(text)s)) > 0)
  AND %(figure)s = CASE
        WHEN r.excluded_reason <> '' THEN 'excluded'
        WHEN telling.state IS NULL THEN 'waiting'
        WHEN telling.plan_id = r.plan_id THEN telling.state
        WHEN telling.state = 'done' THEN 'covered'
        ELSE 'waiting'
    END
ORDER BY r.position
LIMIT %(most)s
