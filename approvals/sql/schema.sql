-- A plan's text is what people decide on: the database keeps it still from the moment it is proposed.

-- Who and what a plan is never changes once proposed, and its state moves only along these arrows.
CREATE FUNCTION plan_follows_its_arrows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> 'draft' AND
       (NEW.workspace_id, NEW.run_id, NEW.title, NEW.rationale, NEW.tool, NEW.channel_id, NEW.event_id, NEW.scope, NEW.currency,
        NEW.version, NEW.token_id, NEW.author_id, NEW.row_count, NEW.checks, NEW.proposed_at)
       IS DISTINCT FROM
       (OLD.workspace_id, OLD.run_id, OLD.title, OLD.rationale, OLD.tool, OLD.channel_id, OLD.event_id, OLD.scope, OLD.currency,
        OLD.version, OLD.token_id, OLD.author_id, OLD.row_count, OLD.checks, OLD.proposed_at)
    THEN
        RAISE EXCEPTION 'plan % is % and its text never changes', OLD.id, OLD.state USING ERRCODE = 'check_violation';
    END IF;
    -- The digest moves with exclusions while the plan is in review; a decision freezes it.
    IF NEW.digest <> OLD.digest AND (NEW.state, OLD.state) NOT IN (('proposed', 'draft'), ('proposed', 'proposed')) THEN
        RAISE EXCEPTION 'the digest of plan % is frozen', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.state <> OLD.state AND (OLD.state || ' ' || NEW.state) NOT IN (
        'draft proposed',
        'draft withdrawn',
        'proposed approved',
        'proposed rejected',
        'proposed changes_requested',
        'proposed withdrawn',
        'proposed expired',
        'approved stopped'
    ) THEN
        RAISE EXCEPTION 'a plan never goes from % to %', OLD.state, NEW.state USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER plan_follows_its_arrows BEFORE UPDATE ON approvals_plan
    FOR EACH ROW EXECUTE FUNCTION plan_follows_its_arrows();

-- A machine (whoever may not decide) closes a plan that nobody decided on in time, and does nothing else to a plan.
CREATE TRIGGER machine_only_expires_plans BEFORE UPDATE ON approvals_plan
    FOR EACH ROW WHEN (
        NOT coalesce(OLD.state = 'proposed' AND NEW.state = 'expired' AND OLD.expires_at <= now(), false)
        AND NOT has_table_privilege('approvals_decision'::regclass, 'INSERT'))
    EXECUTE FUNCTION refuse('is for people to decide on');

-- Rows come only into a draft. Once proposed, a row never changes, but for its exclusion while the plan is in review.
CREATE FUNCTION row_stays_as_proposed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    plan_state text := (SELECT state FROM approvals_plan WHERE id = OLD.plan_id);
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.plan_id <> OLD.plan_id THEN
        RAISE EXCEPTION 'a row belongs to one plan' USING ERRCODE = 'check_violation';
    END IF;
    IF plan_state = 'draft' THEN
        RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    END IF;
    IF TG_OP = 'UPDATE' AND plan_state = 'proposed' AND OLD.excluded_reason = '' AND NEW.excluded_reason <> ''
       AND to_jsonb(NEW) - 'excluded_reason' = to_jsonb(OLD) - 'excluded_reason' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'row % of plan % is frozen (the plan is %)', OLD.position, OLD.plan_id, plan_state
        USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER row_stays_as_proposed BEFORE UPDATE OR DELETE ON approvals_row
    FOR EACH ROW EXECUTE FUNCTION row_stays_as_proposed();

CREATE FUNCTION rows_come_into_a_draft() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM (SELECT DISTINCT plan_id FROM added) a JOIN approvals_plan p ON p.id = a.plan_id
               WHERE p.state <> 'draft') THEN
        RAISE EXCEPTION 'rows can be added to a draft only' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER rows_come_into_a_draft AFTER INSERT ON approvals_row
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION rows_come_into_a_draft();

-- A decision is written once, and never by the person who answers for the plan (four eyes, through any door).
CREATE FUNCTION decision_has_four_eyes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'a decision is never changed' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.kind = 'approved' AND EXISTS (SELECT FROM approvals_plan WHERE id = NEW.plan_id AND author_id = NEW.by_id) THEN
        RAISE EXCEPTION 'nobody approves their own work' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER decision_has_four_eyes BEFORE INSERT OR UPDATE OR DELETE ON approvals_decision
    FOR EACH ROW EXECUTE FUNCTION decision_has_four_eyes();

-- Plans, rows and decisions are not emptied, by whoever may: a session says so first, as a test run does between its tests.
CREATE TRIGGER plans_are_never_truncated BEFORE TRUNCATE ON approvals_plan
    WHEN (current_setting('signoff.may_truncate', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION written_once();
CREATE TRIGGER rows_are_never_truncated BEFORE TRUNCATE ON approvals_row
    WHEN (current_setting('signoff.may_truncate', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION written_once();
CREATE TRIGGER decisions_are_never_truncated BEFORE TRUNCATE ON approvals_decision
    WHEN (current_setting('signoff.may_truncate', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION written_once();

-- At most one approval closes a plan, however many people press at once.
CREATE UNIQUE INDEX one_approval_per_plan ON approvals_decision (plan_id) WHERE kind = 'approved';

-- Plans that may send now: approved, not expired, and not held by a pause of the plan, its channel, its workspace or everything.
CREATE VIEW approvals_sending AS
SELECT p.id, p.channel_id, p.workspace_id, p.tool, p.event_id, p.scope, p.run_id
FROM approvals_plan p
WHERE p.state = 'approved' AND p.expires_at > now()
  AND NOT EXISTS (
      SELECT FROM effects_pause s
      WHERE s.subject IN ('plan:' || p.id, 'channel:' || p.channel_id, 'workspace:' || p.workspace_id, 'everything')
        AND s.lifted_at IS NULL AND (s.until IS NULL OR s.until > now()));
