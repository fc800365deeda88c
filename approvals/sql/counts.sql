-- The closing sum of one plan, but for what waits: that is the rest of its rows. It is read from the plan's own effects, and says of all
-- rows together what the view approvals_outcome says of each.

-- One look into effects_of_one_plan, which knows the state. Effects that hold their key are one for each row.
WITH own AS MATERIALIZED (
    SELECT state, count(*) AS count, array_agg(id) FILTER (WHERE state IN ('failed', 'revoked')) AS freed
    FROM effects_effect WHERE plan_id = %(plan_id)s GROUP BY state
)
SELECT state AS figure, count FROM own WHERE state NOT IN ('failed', 'revoked')
UNION ALL
-- Effects that freed it: the newest of each key, where nobody has taken it since.
SELECT state, count(*)
FROM (
    SELECT DISTINCT ON (e.key, e.epoch) e.state
    FROM effects_effect e
    WHERE e.id = ANY (ARRAY(SELECT unnest(freed) FROM own))
      AND NOT EXISTS (
          SELECT FROM effects_effect held
          WHERE held.key = e.key AND held.epoch = e.epoch AND held.state IN ('done', 'pending', 'unknown', 'stranded'))
    ORDER BY e.key, e.epoch, e.attempt DESC
) newest
GROUP BY state
UNION ALL
SELECT 'covered', count(*) FROM approvals_covered WHERE plan_id = %(plan_id)s
UNION ALL
-- What the ledger knows of a row that is left out comes first, and is counted above.
SELECT 'excluded', count(*)
FROM approvals_outcome
WHERE plan_id = %(plan_id)s AND figure = 'excluded'
  AND position = ANY (ARRAY(SELECT position FROM approvals_left_out WHERE plan_id = %(plan_id)s))
