-- Which rows of a plan may be sent, and when. Read from rows, opt-outs and ledger at each look.

-- Targets that a plan does not reach, since they opted out. An opt-out that was lifted before the plan was proposed is forgotten; one that
-- was lifted later withholds for good what reviewers were shown as left out; one that comes after the plan's end changes nothing of what
-- was told of it.
CREATE VIEW approvals_unwanted AS
SELECT p.id AS plan_id, o.target, o.id AS opt_out_id, o.reason
FROM approvals_plan p
JOIN approvals_optout o ON o.workspace_id = p.workspace_id AND (o.channel_id IS NULL OR o.channel_id = p.channel_id)
WHERE (o.lifted_at IS NULL OR o.lifted_at > p.proposed_at)
  AND o.at < coalesce(
      CASE WHEN p.state IN ('rejected', 'changes_requested', 'withdrawn', 'expired') THEN p.decided_at ELSE p.expires_at END, 'infinity');

-- Rows that are left out: by a reviewer, or since their target opted out. (What the ledger tells of a row comes first: approvals_outcome.)
CREATE VIEW approvals_left_out AS
SELECT plan_id, position FROM approvals_row WHERE excluded_reason <> ''
UNION
SELECT r.plan_id, r.position FROM approvals_unwanted u JOIN approvals_row r ON r.plan_id = u.plan_id AND r.target = u.target;

-- When each row wants to be sent: -infinity for "never tried", null for "not by a machine". Read from the ledger at each look:
-- the newest attempt at the row's (key, epoch) decides, whoever made it. A key that another plan's attempt left free passes to this
-- plan when that attempt failed by itself, or when this plan was approved after a person's ruling; a ruling without "again" frees
-- nothing for plans approved before it. `held` names the open state that keeps the row waiting.
CREATE VIEW approvals_outlook AS
SELECT
    r.id, r.plan_id, r.position,
    CASE
        WHEN newest.state IS NULL THEN timestamptz '-infinity'
        WHEN newest.state = 'failed' AND newest.plan_id = r.plan_id THEN newest.retry_at
        WHEN newest.state = 'failed' AND newest.retry_at IS NOT NULL THEN newest.retry_at
        WHEN newest.state IN ('failed', 'revoked') AND (NOT newest.ruled OR p.decided_at > newest.settled_at)
             AND NOT EXISTS (
                 SELECT FROM effects_effect own WHERE own.key = r.key AND own.epoch = r.epoch AND own.plan_id = r.plan_id)
            THEN timestamptz '-infinity'
    END AS send_at,
    CASE WHEN newest.state IN ('pending', 'unknown', 'stranded') THEN newest.state END AS held
FROM approvals_row r
JOIN approvals_plan p ON p.id = r.plan_id
LEFT JOIN LATERAL (
    SELECT e.state, e.plan_id, e.retry_at, e.ruled, e.settled_at FROM effects_effect e
    WHERE e.key = r.key AND e.epoch = r.epoch
    ORDER BY e.attempt DESC LIMIT 1
) newest ON true
WHERE r.excluded_reason = ''
  AND NOT EXISTS (SELECT FROM approvals_unwanted u WHERE u.plan_id = r.plan_id AND u.target = r.target);
