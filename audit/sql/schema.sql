-- The record is written once: nobody changes or removes an entry.
CREATE FUNCTION entry_is_written_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the record is never changed' USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER entry_is_written_once BEFORE UPDATE OR DELETE ON audit_entry
    FOR EACH ROW EXECUTE FUNCTION entry_is_written_once();

-- Nor empties it, unless the session says so first, as a test run does between its tests.
CREATE TRIGGER entries_are_never_truncated BEFORE TRUNCATE ON audit_entry
    WHEN (current_setting('signoff.may_truncate', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION entry_is_written_once();
