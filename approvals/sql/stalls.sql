-- Of these plans, those that may send, have rows that are due, and that nobody has taken up for some seconds; and since when.
SELECT due.plan_id, due.since
FROM (
    SELECT c.plan_id, greatest(min(c.due_at), (
        SELECT e.reserved_at FROM effects_effect e WHERE e.plan_id = c.plan_id ORDER BY e.id DESC LIMIT 1)) AS since
    FROM approvals_chunk c JOIN approvals_sending p ON p.id = c.plan_id
    WHERE c.plan_id = ANY (%(plans)s)
    GROUP BY c.plan_id
    HAVING NOT coalesce(bool_or(c.leased_until > now()), false)
) due
WHERE due.since < now() - make_interval(secs => %(patience)s)
