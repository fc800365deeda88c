-- How the targets of a version differ from those of the one it replaces. Both are read once, and held against each other by key.
SELECT
    count(*) FILTER (WHERE was.key IS NULL) AS added,
    count(*) FILTER (WHERE (was.lowest, was.highest) <> (now.lowest, now.highest)) AS changed,
    count(*) FILTER (WHERE now.key IS NULL) AS gone
FROM (
    SELECT key, min(content_digest) AS lowest, max(content_digest) AS highest
    FROM approvals_row WHERE plan_id = %(plan_id)s GROUP BY key
) now
FULL JOIN (
    SELECT key, min(content_digest) AS lowest, max(content_digest) AS highest
    FROM approvals_row WHERE plan_id = %(replaces_id)s GROUP BY key
) was USING (key)
