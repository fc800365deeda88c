-- An opt-out is kept as it came, is lifted once, and is never deleted.

CREATE FUNCTION opt_out_is_only_lifted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.lifted_at IS NULL AND NEW.lifted_at IS NOT NULL AND NEW.lifted_by <> ''
       AND to_jsonb(NEW) - 'lifted_at' - 'lifted_by' = to_jsonb(OLD) - 'lifted_at' - 'lifted_by' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'an opt-out is lifted once, and changed in no other way' USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER opt_out_is_only_lifted BEFORE UPDATE ON approvals_optout
    FOR EACH ROW EXECUTE FUNCTION opt_out_is_only_lifted();
CREATE TRIGGER opt_out_is_never_deleted BEFORE DELETE ON approvals_optout
    FOR EACH ROW EXECUTE FUNCTION written_once();
CREATE TRIGGER opt_outs_are_never_truncated BEFORE TRUNCATE ON approvals_optout
    WHEN (current_setting('signoff.may_truncate', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION written_once();
