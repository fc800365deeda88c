-- The ledger's rules, kept by the database whoever asks.
-- Letters are the arrows of docs/ledger.md and effects/states.py; a test drives all thirty-six pairs through both.

-- Two pens write here, and each is known by what its role may write (config/sql/roles.sql): the machine's reserves, the human's marks
-- rulings. The owner of the tables may do both and is told by neither trigger; nothing else here depends on who asks.

-- Birth (arrow a): an effect is reserved as pending, without evidence, and an epoch above 0 was opened by a person before.
CREATE FUNCTION effect_is_born_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> 'pending' THEN
        RAISE EXCEPTION 'an effect is born pending, not %', NEW.state USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.evidence <> '' THEN
        RAISE EXCEPTION 'an effect is born without evidence' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.epoch <> 0 AND NOT EXISTS (SELECT FROM effects_epoch WHERE key = NEW.key AND epoch = NEW.epoch) THEN
        RAISE EXCEPTION 'nobody opened epoch % of %', NEW.epoch, NEW.key USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER effect_is_born_pending BEFORE INSERT ON effects_effect
    FOR EACH ROW WHEN (NEW.state <> 'pending' OR NEW.epoch <> 0 OR NEW.evidence <> '') EXECUTE FUNCTION effect_is_born_pending();

-- Origin: every effect goes out by a channel of its own workspace. Looked at once a statement, however many rows it reserves; a
-- foreign key would look, and lock, once a row. Channels stay, and stay where they are.
CREATE FUNCTION effects_belong_to_their_channel() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM (SELECT DISTINCT workspace_id, channel_id FROM born) b
        WHERE NOT EXISTS (SELECT FROM effects_channel c WHERE c.id = b.channel_id AND c.workspace_id = b.workspace_id)
    ) THEN
        RAISE EXCEPTION 'an effect goes out by a channel of its own workspace' USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER effects_belong_to_their_channel AFTER INSERT ON effects_effect
    REFERENCING NEW TABLE AS born FOR EACH STATEMENT EXECUTE FUNCTION effects_belong_to_their_channel();

-- Every refusal below says its own sentence; the conditions stand in the triggers, so that a lawful write calls no function.
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% % %', TG_TABLE_NAME, OLD.id, TG_ARGV[0] USING ERRCODE = 'check_violation';
END $$;

-- Life: an open effect moves only along the nine arrows b to j.
CREATE TRIGGER effect_follows_the_arrows BEFORE UPDATE OF state ON effects_effect
    FOR EACH ROW WHEN (
        OLD.state <> NEW.state AND OLD.state IN ('pending', 'unknown', 'stranded')
        AND (OLD.state || ' ' || NEW.state) NOT IN (
            'pending done',      -- b
            'pending failed',    -- c
            'pending unknown',   -- d
            'pending stranded',  -- e
            'unknown done',      -- f
            'unknown failed',    -- g
            'unknown stranded',  -- h
            'unknown revoked',   -- i
            'stranded revoked'   -- j
        ))
    EXECUTE FUNCTION refuse('may not go there: no arrow leads from its state to the new one');

-- The human's pen leaves pending rows to the machine, and moves an open effect only as a ruling; calling it done takes evidence.
CREATE TRIGGER human_pen_only_rules BEFORE UPDATE ON effects_effect
    FOR EACH ROW WHEN (
        (OLD.state = 'pending'
         OR OLD.state IN ('unknown', 'stranded')
            AND (NEW.state = OLD.state OR NOT NEW.ruled OR NEW.state = 'done' AND NEW.evidence = ''))
        AND NOT has_column_privilege('effects_effect'::regclass, 'state', 'INSERT'))
    EXECUTE FUNCTION refuse('is left to the machine: a person only rules on it once it is unknown or stranded');

-- The machine's pen never takes the arrows of a person: g, i and j.
CREATE TRIGGER machine_pen_never_rules BEFORE UPDATE OF state ON effects_effect
    FOR EACH ROW WHEN (
        (OLD.state || ' ' || NEW.state) IN ('unknown failed', 'unknown revoked', 'stranded revoked')
        AND NOT has_column_privilege('effects_effect'::regclass, 'ruled', 'UPDATE'))
    EXECUTE FUNCTION refuse('is for a person to rule on');

CREATE TRIGGER channel_stays_where_it_is BEFORE UPDATE OF id, workspace_id ON effects_channel
    FOR EACH ROW WHEN ((OLD.id, OLD.workspace_id) IS DISTINCT FROM (NEW.id, NEW.workspace_id))
    EXECUTE FUNCTION refuse('belongs to its workspace for good');

-- What an effect is never changes: its identity, its content's digest, its origin, its reservation.
CREATE TRIGGER effect_keeps_its_identity BEFORE UPDATE ON effects_effect
    FOR EACH ROW WHEN (
        (NEW.id, NEW.workspace_id, NEW.channel_id, NEW.key, NEW.epoch, NEW.attempt, NEW.tool, NEW.target, NEW.amount_minor,
         NEW.event_id, NEW.scope, NEW.content_digest, NEW.plan_id, NEW.run_id, NEW.worker, NEW.reserved_at, NEW.deadline)
        IS DISTINCT FROM
        (OLD.id, OLD.workspace_id, OLD.channel_id, OLD.key, OLD.epoch, OLD.attempt, OLD.tool, OLD.target, OLD.amount_minor,
         OLD.event_id, OLD.scope, OLD.content_digest, OLD.plan_id, OLD.run_id, OLD.worker, OLD.reserved_at, OLD.deadline))
    EXECUTE FUNCTION refuse('is what it is: its identity never changes');

-- Death: done, failed and revoked rows never change again, but for superseded_by, set once on a done row by itself.
CREATE FUNCTION final_effect_never_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state = 'done' AND OLD.superseded_by_id IS NULL AND NEW.superseded_by_id IS NOT NULL
       AND to_jsonb(NEW) - 'superseded_by_id' = to_jsonb(OLD) - 'superseded_by_id' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'effect % is % and never changes again', OLD.id, OLD.state USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER final_effect_never_changes BEFORE UPDATE ON effects_effect
    FOR EACH ROW WHEN (OLD.state IN ('done', 'failed', 'revoked')) EXECUTE FUNCTION final_effect_never_changes();

-- The trail: every arrow taken leaves one event, whoever took it. It is written as the owner: nobody else may write to the trail.
CREATE FUNCTION effect_leaves_a_trail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO effects_event (effect_id, before, after, by, reason, evidence)
    VALUES (NEW.id, OLD.state, NEW.state, NEW.settled_by, NEW.reason, NEW.evidence);
    RETURN NULL;
END $$;

CREATE TRIGGER effect_leaves_a_trail AFTER UPDATE OF state ON effects_effect
    FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION effect_leaves_a_trail();

-- An epoch supersedes a done effect of the same key, in the epoch before it.
CREATE FUNCTION epoch_supersedes_a_done_effect() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM effects_effect
        WHERE id = NEW.supersedes_id AND key = NEW.key AND epoch = NEW.epoch - 1
          AND state = 'done' AND workspace_id = NEW.workspace_id
    ) THEN
        RAISE EXCEPTION 'epoch % of % supersedes no done effect', NEW.epoch, NEW.key USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER epoch_supersedes_a_done_effect BEFORE INSERT ON effects_epoch
    FOR EACH ROW EXECUTE FUNCTION epoch_supersedes_a_done_effect();

-- What is written stays written: effects and channels are never deleted; replies, trail, look-ups and epochs never change either.
CREATE FUNCTION written_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% rows are never %d', TG_TABLE_NAME, lower(TG_OP) USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER effect_is_never_deleted BEFORE DELETE ON effects_effect
    FOR EACH ROW EXECUTE FUNCTION written_once();
CREATE TRIGGER channel_is_never_deleted BEFORE DELETE ON effects_channel
    FOR EACH ROW EXECUTE FUNCTION written_once();
CREATE TRIGGER reply_is_written_once BEFORE UPDATE OR DELETE ON effects_keptreply
    FOR EACH ROW EXECUTE FUNCTION written_once();
CREATE TRIGGER event_is_written_once BEFORE UPDATE OR DELETE ON effects_event
    FOR EACH ROW EXECUTE FUNCTION written_once();
CREATE TRIGGER look_up_is_written_once BEFORE UPDATE OR DELETE ON effects_lookup
    FOR EACH ROW EXECUTE FUNCTION written_once();
CREATE TRIGGER epoch_is_written_once BEFORE UPDATE OR DELETE ON effects_epoch
    FOR EACH ROW EXECUTE FUNCTION written_once();

-- Not emptied either, by whoever may: a session says so first, as a test run does between its tests.
CREATE TRIGGER effects_are_never_truncated BEFORE TRUNCATE ON effects_effect
    WHEN (current_setting('signoff.may_truncate', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION written_once();
CREATE TRIGGER replies_are_never_truncated BEFORE TRUNCATE ON effects_keptreply
    WHEN (current_setting('signoff.may_truncate', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION written_once();
CREATE TRIGGER events_are_never_truncated BEFORE TRUNCATE ON effects_event
    WHEN (current_setting('signoff.may_truncate', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION written_once();
CREATE TRIGGER look_ups_are_never_truncated BEFORE TRUNCATE ON effects_lookup
    WHEN (current_setting('signoff.may_truncate', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION written_once();
CREATE TRIGGER epochs_are_never_truncated BEFORE TRUNCATE ON effects_epoch
    WHEN (current_setting('signoff.may_truncate', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION written_once();
