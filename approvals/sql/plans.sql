-- What happens to all rows of a plan at once, however many there are.

-- copy: finished rows stream into a draft.
COPY approvals_row (plan_id, position, target_typed, target, key, epoch, amount_minor, subject, text, html, payload, record,
                    content_digest, excluded_reason)
FROM STDIN

-- twice_in_load: keys that two rows of the load at hand share, each with the positions of its first two rows.
SELECT min(target), (array_agg(position ORDER BY position))[1:2], count(*)
FROM approvals_row
WHERE plan_id = %(plan_id)s AND position > %(after)s
GROUP BY key
HAVING count(*) > 1
ORDER BY 2

-- show_opt_outs: nobody lifts an opt-out of this workspace until the plan that is being proposed is there (see opting_out.sql).
SELECT pg_advisory_xact_lock_shared(hashtext('signoff opt-outs shown'), %(workspace_id)s)

-- take_epochs: each row asks for the highest epoch that a person opened for its key; 0 where nobody did.
UPDATE approvals_row r
SET epoch = opened.epoch
FROM (
    SELECT e.key, max(e.epoch) AS epoch
    FROM effects_epoch e
    WHERE e.key IN (SELECT key FROM approvals_row WHERE plan_id = %(plan_id)s)
    GROUP BY e.key
) opened
WHERE r.plan_id = %(plan_id)s AND r.key = opened.key AND r.epoch <> opened.epoch
