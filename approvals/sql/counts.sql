-- The closing sum of one plan, but for what waits: that is the rest of its rows. It is read from the plan's own effects, and says of all
-- rows together what rows.sql says of each: the effect that holds a row's (key, epoch) tells; where none does, this plan's own newest
-- attempt. A row is `covered` when the done effect that holds its key was somebody else's.

-- Effects that hold their key, one for each row, counted by one look into effects_of_one_plan, which knows the state.
SELECT state AS figure, count(*)
FROM effects_effect
WHERE plan_id = %(plan_id)s AND state IN ('done', 'pending', 'unknown', 'stranded')
GROUP BY state
UNION ALL
-- Effects that freed it, the newest of each key, where nobody has taken it since.
SELECT state, count(*)
FROM (
    SELECT DISTINCT ON (e.key, e.epoch) e.state
    FROM effects_effect e
    WHERE e.id = ANY (ARRAY(SELECT id FROM effects_effect WHERE plan_id = %(plan_id)s AND state IN ('failed', 'revoked')))
      AND NOT EXISTS (
          SELECT FROM effects_effect held
          WHERE held.key = e.key AND held.epoch = e.epoch AND held.state IN ('done', 'pending', 'unknown', 'stranded'))
    ORDER BY e.key, e.epoch, e.attempt DESC
) freed
GROUP BY state
UNION ALL
SELECT 'covered', count(*) FROM approvals_covered WHERE plan_id = %(plan_id)s
UNION ALL
SELECT 'excluded', count(*) FROM approvals_row WHERE plan_id = %(plan_id)s AND excluded_reason <> ''
