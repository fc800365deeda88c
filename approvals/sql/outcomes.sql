-- What became of the rows of plans, read from the ledger at each look.

-- Each row with its outcome, by the word under which the closing sum counts it. The effect that holds a row's (key, epoch) tells; where
-- none does, the newest attempt of the row's own plan. A row is `covered` when the done effect that holds its key was somebody else's,
-- `waiting` when nothing of its plan was tried and nothing covers it, and `excluded` when a reviewer left it out, or when it would
-- wait for ever, since its target opted out.
CREATE VIEW approvals_outcome AS
SELECT
    r.id, r.plan_id, r.position, r.target_typed, r.target, r.key, r.epoch, r.amount_minor, r.subject, r.text, r.html, r.payload, r.record,
    r.content_digest, coalesce('opted out: ' || unwanted.reason, r.excluded_reason) AS excluded_reason,
    telling.id AS effect_id, telling.attempt, telling.receipt, telling.reason,
    CASE WHEN unwanted.reason IS NOT NULL THEN 'excluded' ELSE told.figure END AS figure
FROM approvals_row r
LEFT JOIN LATERAL (
    SELECT e.id, e.state, e.plan_id, e.attempt, e.receipt, e.reason FROM effects_effect e
    WHERE e.key = r.key AND e.epoch = r.epoch
    ORDER BY e.state IN ('failed', 'revoked'), e.plan_id IS DISTINCT FROM r.plan_id, e.attempt DESC
    LIMIT 1
) telling ON true
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN r.excluded_reason <> '' THEN 'excluded'
        WHEN telling.state IS NULL THEN 'waiting'
        WHEN telling.plan_id = r.plan_id THEN telling.state
        WHEN telling.state = 'done' THEN 'covered'
        ELSE 'waiting'
    END AS figure
) told
LEFT JOIN LATERAL (
    SELECT u.reason FROM approvals_unwanted u
    WHERE told.figure = 'waiting' AND u.plan_id = r.plan_id AND u.target = r.target
    ORDER BY u.opt_out_id LIMIT 1
) unwanted ON true;

-- Rows whose key an effect of somebody else has, and in which state. A key is made of the event, among other things, so only effects of
-- the same event can have a key of this plan: those of its other plans, and those that no plan asked for. Where there are none, which is
-- most often, no row is looked at. Events are compared as they enter the key (effects/keys.py): composed.
CREATE VIEW approvals_elsewhere AS
SELECT r.plan_id, r.position, r.excluded_reason, elsewhere.state
FROM (
    SELECT p.id AS plan_id, e.key, e.epoch, e.state
    FROM approvals_plan p
    JOIN approvals_plan other
        ON other.workspace_id = p.workspace_id AND normalize(other.event_id) = normalize(p.event_id) AND other.id <> p.id
    JOIN effects_effect e ON e.plan_id = other.id
    UNION ALL
    SELECT p.id, e.key, e.epoch, e.state
    FROM approvals_plan p
    JOIN effects_effect e ON e.plan_id IS NULL AND e.workspace_id = p.workspace_id AND normalize(e.event_id) = normalize(p.event_id)
) elsewhere
JOIN approvals_row r ON r.plan_id = elsewhere.plan_id AND r.key = elsewhere.key AND r.epoch = elsewhere.epoch;

-- Rows that a done effect of somebody else covers.
CREATE VIEW approvals_covered AS
SELECT plan_id, position FROM approvals_elsewhere WHERE state = 'done' AND excluded_reason = '';
