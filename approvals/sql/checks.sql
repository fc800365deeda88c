-- Checks that need all rows at once. Each gives how many rows it concerns and the positions of the first twenty.

-- duplicate_target: two rows ask for one and the same effect.
SELECT count(*), (array_agg(position ORDER BY position))[1:20]
FROM (
    SELECT position, count(*) OVER (PARTITION BY key) AS alike
    FROM approvals_row WHERE plan_id = %(plan_id)s
) r
WHERE alike > 1

-- plus_tag_pair: ana@x and ana+news@x most often reach one person.
SELECT count(*), (array_agg(position ORDER BY position))[1:20]
FROM (
    SELECT position, min(target) OVER one_person <> max(target) OVER one_person AS differ
    FROM approvals_row
    WHERE plan_id = %(plan_id)s AND target LIKE '%%@%%'
    WINDOW one_person AS (PARTITION BY regexp_replace(target, '\+[^@]*@', '@'))
) r
WHERE differ

-- already_done: the ledger has this very effect as done, so the row is covered and nothing more goes out.
SELECT count(*), (array_agg(r.position ORDER BY r.position))[1:20]
FROM approvals_row r JOIN effects_effect e ON e.key = r.key AND e.epoch = r.epoch
WHERE r.plan_id = %(plan_id)s AND e.state = 'done'

-- already_unknown: nobody knows yet whether this very effect happened, so the row would wait for that answer.
SELECT count(*), (array_agg(r.position ORDER BY r.position))[1:20]
FROM approvals_row r JOIN effects_effect e ON e.key = r.key AND e.epoch = r.epoch
WHERE r.plan_id = %(plan_id)s AND e.state IN ('pending', 'unknown', 'stranded')

-- unusual_targets: targets that hold anything but plain Latin letters.
SELECT position, target FROM approvals_row
WHERE plan_id = %(plan_id)s AND (target ~ '[^\x01-\x7f]' OR target LIKE '%%xn--%%')
ORDER BY position

-- positions_of_targets: where plain targets stand that others look like.
SELECT position, lower(target) FROM approvals_row
WHERE plan_id = %(plan_id)s AND lower(target) = ANY(%(targets)s)
ORDER BY position

-- opted_out: nothing will be sent to these targets, in whichever plan.
SELECT count(*), (array_agg(position ORDER BY position))[1:20]
FROM approvals_left_out WHERE plan_id = %(plan_id)s
