-- The rules of callbacks, kept by the database whoever asks; who may write which column stands in config/sql/roles.sql.

-- A callback speaks of an effect of its own channel, in its own workspace.
CREATE FUNCTION callback_speaks_of_its_channel() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM effects_effect WHERE id = NEW.effect_id AND channel_id = NEW.channel_id AND workspace_id = NEW.workspace_id
    ) THEN
        RAISE EXCEPTION 'a callback speaks of an effect of its own channel' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER callback_speaks_of_its_channel BEFORE INSERT ON effects_callback
    FOR EACH ROW EXECUTE FUNCTION callback_speaks_of_its_channel();

-- What was received stays as it was received.
CREATE TRIGGER callback_stays_as_received BEFORE UPDATE ON effects_callback
    FOR EACH ROW WHEN (
        (NEW.id, NEW.workspace_id, NEW.channel_id, NEW.event_id, NEW.effect_id, NEW.kind, NEW.exact, NEW.receipt, NEW.reason,
         NEW.said_at, NEW.raw, NEW.received_at)
        IS DISTINCT FROM
        (OLD.id, OLD.workspace_id, OLD.channel_id, OLD.event_id, OLD.effect_id, OLD.kind, OLD.exact, OLD.receipt, OLD.reason,
         OLD.said_at, OLD.raw, OLD.received_at))
    EXECUTE FUNCTION refuse('stays as it was received');

-- It is applied once, and seen once.
CREATE TRIGGER callback_is_applied_once BEFORE UPDATE ON effects_callback
    FOR EACH ROW WHEN (
        OLD.applied_at IS NOT NULL
        AND (NEW.applied_at, NEW.outcome, NEW.due_at) IS DISTINCT FROM (OLD.applied_at, OLD.outcome, OLD.due_at))
    EXECUTE FUNCTION refuse('was applied already');
CREATE TRIGGER callback_is_seen_once BEFORE UPDATE ON effects_callback
    FOR EACH ROW WHEN (
        OLD.seen_at IS NOT NULL
        AND (NEW.seen_at, NEW.seen_by, NEW.seen_reason) IS DISTINCT FROM (OLD.seen_at, OLD.seen_by, OLD.seen_reason))
    EXECUTE FUNCTION refuse('was seen already');

-- Neither deleted nor emptied.
CREATE TRIGGER callback_is_never_deleted BEFORE DELETE ON effects_callback
    FOR EACH ROW EXECUTE FUNCTION written_once();
CREATE TRIGGER callbacks_are_never_truncated BEFORE TRUNCATE ON effects_callback
    WHEN (current_setting('signoff.may_truncate', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION written_once();
