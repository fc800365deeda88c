-- The closing sum of one plan: each row that is not excluded, by what the ledger says of its (key, epoch).
-- The effect that holds the key tells; where none does, this plan's own newest attempt. A row is `covered` when the done effect that
-- holds its key was somebody else's, and `waiting` when nothing of ours was tried and nothing covers it.
SELECT
    CASE
        WHEN telling.state IS NULL THEN 'waiting'
        WHEN telling.plan_id = r.plan_id THEN telling.state
        WHEN telling.state = 'done' THEN 'covered'
        ELSE 'waiting'
    END AS figure,
    count(*)
FROM approvals_row r
LEFT JOIN LATERAL (
    SELECT e.state, e.plan_id FROM effects_effect e
    WHERE e.key = r.key AND e.epoch = r.epoch
    ORDER BY e.state IN ('failed', 'revoked'), e.plan_id IS DISTINCT FROM r.plan_id, e.attempt DESC
    LIMIT 1
) telling ON true
WHERE r.plan_id = %(plan_id)s AND r.excluded_reason = ''
GROUP BY 1
