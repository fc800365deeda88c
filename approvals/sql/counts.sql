-- The closing sum of one plan: each row that is not excluded, by what the ledger says of its (key, epoch).
-- A row is `covered` when the done effect that holds its key was somebody else's, `waiting` when nothing of ours was
-- tried and no done effect covers it. Newest attempt decides.
SELECT
    CASE
        WHEN newest.state IS NULL THEN 'waiting'
        WHEN newest.plan_id IS NOT DISTINCT FROM r.plan_id THEN newest.state
        WHEN newest.state = 'done' THEN 'covered'
        ELSE 'waiting'
    END AS figure,
    count(*)
FROM approvals_row r
LEFT JOIN LATERAL (
    SELECT e.state, e.plan_id FROM effects_effect e
    WHERE e.key = r.key AND e.epoch = r.epoch
    ORDER BY e.attempt DESC LIMIT 1
) newest ON true
WHERE r.plan_id = %(plan_id)s AND r.excluded_reason = ''
GROUP BY 1
