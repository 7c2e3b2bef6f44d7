-- Makes an existing table watchable. Its writers do not change, but the table refuses changes of
-- id, namespace and name, rows that are no object, and REPLACE, which deletes rows without a
-- trigger: use INSERT ... ON CONFLICT DO UPDATE. A table with other unique columns must keep them
-- in setting_versions, too, as id here. The table is:
--
--   CREATE TABLE settings (
--     id INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT NOT NULL, name TEXT NOT NULL,
--     labels TEXT NOT NULL DEFAULT '{}', spec TEXT NOT NULL, UNIQUE (namespace, name));

-- Start over if the table was watchable before. The epoch changes, so clients list again.
DROP TRIGGER IF EXISTS setting_inserted; DROP TRIGGER IF EXISTS setting_updates;
DROP TRIGGER IF EXISTS setting_updated; DROP TRIGGER IF EXISTS setting_deletes;
DROP VIEW IF EXISTS setting_objects;
DROP TABLE IF EXISTS setting_changes; DROP TABLE IF EXISTS setting_versions; DROP TABLE IF EXISTS setting_epoch;

-- A change per row. SQLite has one writer at a time, so the versions follow the order of commits.
-- AUTOINCREMENT never uses a version twice, also after the newest row was deleted.
CREATE TABLE setting_changes (
  version INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL DEFAULT (unixepoch()),
  namespace TEXT, name TEXT, before TEXT, before_version INTEGER, after TEXT);
INSERT INTO setting_changes (version) VALUES (1); -- the state at version 1: the oldest row is never read as a change

-- The version of each row. The id shows that REPLACE has deleted another row.
CREATE TABLE setting_versions (namespace TEXT, name TEXT, version INTEGER NOT NULL, id INTEGER UNIQUE, PRIMARY KEY (namespace, name));
INSERT INTO setting_versions SELECT namespace, name, 1, id FROM settings;

-- The epoch changes if the schema is installed again. Change it by hand after you restore a backup.
CREATE TABLE setting_epoch (epoch TEXT NOT NULL);
INSERT INTO setting_epoch VALUES (lower(hex(randomblob(8))));

-- The JSON that watchers receive, without the version.
CREATE VIEW setting_objects AS SELECT namespace, name, json_object('apiVersion', 'example.com/v1', 'kind', 'Setting',
  'metadata', json_object('name', name, 'namespace', namespace, 'uid', CAST(id AS TEXT), 'labels', json(labels)),
  'spec', json(spec)) AS object FROM settings;

CREATE TRIGGER setting_inserted AFTER INSERT ON settings BEGIN
  SELECT RAISE(ABORT, 'labels must be an object of strings, and spec must be JSON, and the name must not be empty')
    WHERE NEW.name = '' OR NOT json_valid(NEW.spec) OR NOT json_valid(NEW.labels) OR json_type(NEW.labels) <> 'object'
      OR EXISTS (SELECT 1 FROM json_each(NEW.labels) WHERE type <> 'text');
  SELECT RAISE(ABORT, 'REPLACE is not supported: use ON CONFLICT DO UPDATE')
    WHERE EXISTS (SELECT 1 FROM setting_versions v WHERE (v.namespace, v.name) = (NEW.namespace, NEW.name))
      OR EXISTS (SELECT 1 FROM setting_versions v WHERE v.id = NEW.id);
  INSERT INTO setting_changes (namespace, name, after)
    SELECT namespace, name, object FROM setting_objects o WHERE (o.namespace, o.name) = (NEW.namespace, NEW.name);
  INSERT INTO setting_versions SELECT namespace, name, (SELECT max(version) FROM setting_changes), id
    FROM settings s WHERE (s.namespace, s.name) = (NEW.namespace, NEW.name); -- none if another trigger has deleted the row
END;

-- The object before an update or a delete is what the trigger still finds in the table. A trigger
-- of the application may change a row while setting_updated has yet to complete an earlier change
-- of the row: SQLite runs newer triggers first. So each change completes the one before it.
CREATE TRIGGER setting_updates BEFORE UPDATE ON settings BEGIN
  SELECT RAISE(ABORT, 'settings cannot be renamed: delete and insert rows')
    WHERE (OLD.id, OLD.namespace, OLD.name) <> (NEW.id, NEW.namespace, NEW.name);
  SELECT RAISE(ABORT, 'labels must be an object of strings, and spec must be JSON')
    WHERE NOT json_valid(NEW.spec) OR NOT json_valid(NEW.labels) OR json_type(NEW.labels) <> 'object'
      OR EXISTS (SELECT 1 FROM json_each(NEW.labels) WHERE type <> 'text');
  UPDATE setting_changes SET after =
    (SELECT object FROM setting_objects o WHERE (o.namespace, o.name) = (OLD.namespace, OLD.name))
    WHERE after IS NULL AND (namespace, name) = (OLD.namespace, OLD.name)
      AND version = (SELECT v.version FROM setting_versions v WHERE (v.namespace, v.name) = (OLD.namespace, OLD.name));
  INSERT INTO setting_changes (namespace, name, before, before_version)
    SELECT namespace, name, object, version FROM setting_objects o JOIN setting_versions v USING (namespace, name)
    WHERE (o.namespace, o.name) = (OLD.namespace, OLD.name);
  UPDATE setting_versions SET version = (SELECT max(version) FROM setting_changes)
    WHERE (namespace, name) = (OLD.namespace, OLD.name);
END;
CREATE TRIGGER setting_updated AFTER UPDATE ON settings BEGIN
  UPDATE setting_changes SET after =
    (SELECT object FROM setting_objects o WHERE (o.namespace, o.name) = (NEW.namespace, NEW.name))
    WHERE version = (SELECT v.version FROM setting_versions v WHERE (v.namespace, v.name) = (NEW.namespace, NEW.name));
END;

CREATE TRIGGER setting_deletes BEFORE DELETE ON settings BEGIN
  UPDATE setting_changes SET after =
    (SELECT object FROM setting_objects o WHERE (o.namespace, o.name) = (OLD.namespace, OLD.name))
    WHERE after IS NULL AND (namespace, name) = (OLD.namespace, OLD.name)
      AND version = (SELECT v.version FROM setting_versions v WHERE (v.namespace, v.name) = (OLD.namespace, OLD.name));
  INSERT INTO setting_changes (namespace, name, before, before_version)
    SELECT namespace, name, object, version FROM setting_objects o JOIN setting_versions v USING (namespace, name)
    WHERE (o.namespace, o.name) = (OLD.namespace, OLD.name);
  DELETE FROM setting_versions WHERE (namespace, name) = (OLD.namespace, OLD.name);
END;

-- The program drops old changes, except the newest one; see History.Age of watchcache.Options.
