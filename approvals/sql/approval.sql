-- What may be sent rests on a decision that is on the record, and ends when that said.

-- A plan is approved only where a person's decision for exactly this digest is written down before, in the same transaction or earlier.
CREATE FUNCTION approval_rests_on_a_decision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM approvals_decision WHERE plan_id = NEW.id AND kind = 'approved' AND digest = NEW.digest) THEN
        RAISE EXCEPTION 'nobody decided to approve plan % as it is', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER approval_rests_on_a_decision BEFORE UPDATE OF state ON approvals_plan
    FOR EACH ROW WHEN (OLD.state <> 'approved' AND NEW.state = 'approved') EXECUTE FUNCTION approval_rests_on_a_decision();

-- The end of an approval is part of it: nobody gives it more time.
CREATE TRIGGER approval_keeps_its_end BEFORE UPDATE OF expires_at ON approvals_plan
    FOR EACH ROW WHEN (OLD.state NOT IN ('draft', 'proposed') AND NEW.expires_at IS DISTINCT FROM OLD.expires_at
                       AND coalesce(NEW.expires_at > OLD.expires_at, true))
    EXECUTE FUNCTION refuse('keeps its end: an approval is not given more time');
