-- Makes an existing table watchable. Its writers do not change, but the table refuses TRUNCATE,
-- changes of namespace and name, and rows that are no object. A transaction that changes it cannot
-- use PREPARE TRANSACTION, because of NOTIFY. The table is:
--
--   CREATE TABLE settings (
--     id bigint GENERATED ALWAYS AS IDENTITY, namespace text, name text,
--     labels jsonb NOT NULL DEFAULT '{}', spec json NOT NULL, PRIMARY KEY (namespace, name));

-- A row that watchers cannot parse would stop the feed.
ALTER TABLE settings ADD CONSTRAINT settings_are_objects CHECK (name <> '' AND jsonb_typeof(labels) = 'object' AND NOT labels @? 'strict $.* ? (@.type() != "string")');
CREATE SEQUENCE setting_version START 2;
CREATE TABLE setting_versions (namespace text, name text, version bigint NOT NULL, PRIMARY KEY (namespace, name));
CREATE TABLE setting_changes (version bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), namespace text, name text, before json, after json);
INSERT INTO setting_changes VALUES (1); -- the state at version 1: the oldest row is never read as a change

-- The JSON that watchers receive.
CREATE FUNCTION setting_object(s settings, version bigint) RETURNS json LANGUAGE sql AS $$
  SELECT json_build_object('apiVersion', 'example.com/v1', 'kind', 'Setting', 'metadata', json_build_object('name', s.name,
    'namespace', s.namespace, 'uid', s.id::text, 'resourceVersion', version::text, 'labels', s.labels), 'spec', s.spec) $$;

CREATE FUNCTION record_setting_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE change setting_changes; was bigint;
BEGIN
  IF TG_OP = 'TRUNCATE' OR TG_OP = 'UPDATE' AND (OLD.namespace, OLD.name) <> (NEW.namespace, NEW.name) THEN
    RAISE 'settings cannot be truncated or renamed: delete and insert rows';
  END IF;
  -- A sequence does not follow the order of commits. The trigger is deferred, so transactions get
  -- here when they commit. The lock lets them pass one by one, and each holds it until its commit
  -- is visible. So whoever sees a version sees all lower ones.
  PERFORM pg_advisory_xact_lock('setting_changes'::regclass::bigint);
  change.version := nextval('setting_version');
  change.namespace := coalesce(NEW.namespace, OLD.namespace); change.name := coalesce(NEW.name, OLD.name);
  DELETE FROM setting_versions v WHERE (v.namespace, v.name) = (OLD.namespace, OLD.name) RETURNING v.version INTO was;
  change.before := CASE WHEN TG_OP <> 'INSERT' THEN setting_object(OLD, was) END;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO setting_versions VALUES (NEW.namespace, NEW.name, change.version);
    change.after := setting_object(NEW, change.version);
  END IF;
  INSERT INTO setting_changes VALUES (change.version, clock_timestamp(), change.namespace, change.name, change.before, change.after);
  PERFORM pg_notify('setting_changes', change.version::text);
  RETURN NULL;
END $$;
-- pg_temp is last, so that no temporary table of a writer hides a table of this schema.
DO $$ BEGIN EXECUTE format('ALTER FUNCTION record_setting_change() SET search_path = %I, pg_temp', current_schema()); END $$;

CREATE CONSTRAINT TRIGGER record_change AFTER INSERT OR UPDATE OR DELETE ON settings DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION record_setting_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON settings EXECUTE FUNCTION record_setting_change();
INSERT INTO setting_versions SELECT namespace, name, 1 FROM settings;

-- Drops the changes that are older than max_age, except the newest one. Call it from time to time.
CREATE FUNCTION prune_setting_changes(max_age interval) RETURNS void LANGUAGE sql AS $$
  DELETE FROM setting_changes WHERE version < (SELECT max(version) FROM setting_changes WHERE at < now() - max_age) $$;
