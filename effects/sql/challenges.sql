-- The one answer to a provider's challenge: begun, then its reply kept, and from there it never changes. What never left may be begun again.
CREATE TRIGGER challenge_is_answered_once BEFORE UPDATE ON effects_challenge
    FOR EACH ROW WHEN (OLD.effect_id <> NEW.effect_id OR OLD.kind NOT IN ('', 'not sent')) EXECUTE FUNCTION written_once();
CREATE TRIGGER challenge_is_never_deleted BEFORE DELETE ON effects_challenge
    FOR EACH ROW EXECUTE FUNCTION written_once();
CREATE TRIGGER challenges_are_never_truncated BEFORE TRUNCATE ON effects_challenge
    WHEN (current_setting('signoff.may_truncate', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION written_once();
