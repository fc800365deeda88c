-- Positions of the rows that the closing sum counts under one word, in order: the same reading as counts.sql, row by row.
-- A state that this plan's own effects are in is looked for among those first: few of a hundred thousand are unknown.
SELECT r.position
FROM approvals_row r
LEFT JOIN LATERAL (
    SELECT e.state, e.plan_id FROM effects_effect e
    WHERE e.key = r.key AND e.epoch = r.epoch
    ORDER BY e.state IN ('failed', 'revoked'), e.plan_id IS DISTINCT FROM r.plan_id, e.attempt DESC
    LIMIT 1
) telling ON true
WHERE r.plan_id = %(plan_id)s AND r.position > %(after)s
  AND (%(figure)s IN ('waiting', 'covered', 'excluded')
       OR r.key IN (SELECT key FROM effects_effect WHERE plan_id = %(plan_id)s AND state = %(figure)s))
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
