-- Makes an existing table watchable, with PostgreSQL 14 or later. Execute it again after the triggers
-- were disabled for a while. Its writers do not change, but the table refuses TRUNCATE, changes of
-- namespace and name, and rows that are no object. A transaction that changes it cannot use PREPARE
-- TRANSACTION, because of NOTIFY. The table is:
--
--   CREATE TABLE settings (
--     id bigint GENERATED ALWAYS AS IDENTITY, namespace text, name text,
--     labels jsonb NOT NULL DEFAULT '{}', spec json NOT NULL, PRIMARY KEY (namespace, name));

-- Start over if the table was watchable before. The epoch changes, so clients list again.
DROP FUNCTION IF EXISTS record_setting_change CASCADE; -- with its triggers, wherever they are
DROP VIEW IF EXISTS setting_objects;
DROP FUNCTION IF EXISTS setting_key, setting_object, prune_setting_changes;
DROP TABLE IF EXISTS setting_versions, setting_changes;
DROP SEQUENCE IF EXISTS setting_version;

-- Watchers would not see a row that is no object.
ALTER TABLE settings DROP CONSTRAINT IF EXISTS settings_are_objects;
ALTER TABLE settings ADD CONSTRAINT settings_are_objects CHECK (name <> '' AND jsonb_typeof(labels) = 'object' AND NOT labels @? 'strict $.* ? (@.type() != "string")');
CREATE SEQUENCE setting_version START 2;
CREATE TABLE setting_versions (namespace text, name text, version bigint NOT NULL, PRIMARY KEY (namespace, name));
CREATE TABLE setting_changes (version bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), namespace text, name text, before json, after json);
INSERT INTO setting_changes VALUES (1); -- the state at version 1: the oldest row is never read as a change

-- The key and the JSON that watchers receive. With BEGIN ATOMIC, PostgreSQL knows which columns the
-- functions use: it refuses to drop them, which would make every write to the table fail, and it
-- follows a column that is renamed.
CREATE FUNCTION setting_key(s settings) RETURNS text[] LANGUAGE sql BEGIN ATOMIC
  SELECT ARRAY[s.namespace, s.name]; END;
CREATE FUNCTION setting_object(s settings, version bigint) RETURNS json LANGUAGE sql BEGIN ATOMIC
  SELECT json_build_object('apiVersion', 'example.com/v1', 'kind', 'Setting', 'metadata', json_build_object('name', s.name,
    'namespace', s.namespace, 'uid', s.id::text, 'resourceVersion', version::text, 'labels', s.labels), 'spec', s.spec); END;
CREATE VIEW setting_objects AS SELECT namespace, name, v.version, setting_object(s, v.version) AS object
  FROM settings s JOIN setting_versions v USING (namespace, name);

CREATE FUNCTION record_setting_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE change setting_changes; key text[]; was bigint;
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    RAISE 'settings cannot be truncated: delete the rows';
  END IF;
  -- Without a flush, a crash could undo a commit that watchers have seen and use its version again.
  PERFORM set_config('synchronous_commit', 'local', true) WHERE current_setting('synchronous_commit') = 'off';
  -- A sequence does not follow the order of commits. The trigger is deferred, so transactions get
  -- here when they commit. The lock lets them pass one by one, and each holds it until its commit
  -- is visible. So whoever sees a version sees all lower ones.
  PERFORM pg_advisory_xact_lock('setting_changes'::regclass::bigint);
  change.version := nextval('setting_version');
  IF TG_OP <> 'INSERT' THEN
    key := setting_key(OLD);
    DELETE FROM setting_versions v WHERE v.namespace = key[1] AND v.name = key[2] RETURNING v.version INTO was;
    change.before := setting_object(OLD, was);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    IF key <> setting_key(NEW) THEN
      RAISE 'settings cannot be renamed: delete and insert rows';
    END IF;
    key := setting_key(NEW);
    INSERT INTO setting_versions VALUES (key[1], key[2], change.version);
    change.after := setting_object(NEW, change.version);
  END IF;
  INSERT INTO setting_changes VALUES (change.version, clock_timestamp(), key[1], key[2], change.before, change.after);
  PERFORM pg_notify('setting_changes', change.version::text);
  RETURN NULL;
END $$;
-- pg_temp is last, so that no temporary table of a writer hides a table of this schema.
DO $$ BEGIN EXECUTE format('ALTER FUNCTION record_setting_change() SET search_path = %I, pg_temp', current_schema()); END $$;

-- ALWAYS: the triggers also run for writers with session_replication_role = replica, as
-- subscriptions and loaders of dumps are.
CREATE CONSTRAINT TRIGGER record_change AFTER INSERT OR UPDATE OR DELETE ON settings DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION record_setting_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON settings EXECUTE FUNCTION record_setting_change();
ALTER TABLE settings ENABLE ALWAYS TRIGGER record_change, ENABLE ALWAYS TRIGGER refuse_truncate;
INSERT INTO setting_versions SELECT namespace, name, 1 FROM settings;

-- Drops the changes that are older than max_age, except the newest one. The program calls it.
CREATE FUNCTION prune_setting_changes(max_age interval) RETURNS void LANGUAGE sql AS $$
  DELETE FROM setting_changes WHERE version < (SELECT max(version) FROM setting_changes WHERE at < now() - max_age) $$;
