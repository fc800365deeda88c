-- Rows that a done effect of somebody else covers. A key is made of the event, among other things, so only effects of the same event
-- can hold a key of this plan: those of its other plans, and those that no plan asked for. Where there are none, which is most often,
-- no row is looked at. Events are compared as they enter the key (effects/keys.py): composed.
CREATE VIEW approvals_covered AS
SELECT r.plan_id, r.position
FROM (
    SELECT p.id AS plan_id, e.key, e.epoch
    FROM approvals_plan p
    JOIN approvals_plan other
        ON other.workspace_id = p.workspace_id AND normalize(other.event_id) = normalize(p.event_id) AND other.id <> p.id
    JOIN effects_effect e ON e.plan_id = other.id
    WHERE e.state = 'done'
    UNION ALL
    SELECT p.id, e.key, e.epoch
    FROM approvals_plan p
    JOIN effects_effect e ON e.plan_id IS NULL AND e.workspace_id = p.workspace_id AND normalize(e.event_id) = normalize(p.event_id)
    WHERE e.state = 'done'
) elsewhere
JOIN approvals_row r ON r.plan_id = elsewhere.plan_id AND r.key = elsewhere.key AND r.epoch = elsewhere.epoch
WHERE r.excluded_reason = '';
