-- Of these plans, those that may send, have rows that are due, and that nobody has taken up for some seconds; and since when.
SELECT due.plan_id, due.since
FROM (
    SELECT
        c.plan_id,
        greatest(
            min(c.due_at),
            (SELECT e.reserved_at FROM effects_effect e WHERE e.plan_id = c.plan_id ORDER BY e.id DESC LIMIT 1),
            (SELECT max(least(s.lifted_at, s.until)) FROM effects_pause s
             WHERE s.subject IN ('plan:' || c.plan_id, 'channel:' || p.channel_id, 'workspace:' || p.workspace_id, 'everything'))
        ) AS since
    FROM approvals_chunk c JOIN approvals_sending p ON p.id = c.plan_id
    WHERE c.plan_id = ANY (%(plans)s)
    GROUP BY c.plan_id, p.channel_id, p.workspace_id
    HAVING NOT coalesce(bool_or(c.leased_until > now()), false)
) due
WHERE due.since < now() - make_interval(secs => %(patience)s)
