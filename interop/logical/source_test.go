//go:build unix

package logical

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
	"github.com/listwatch/listwatch/store/postgres"
)

const documents = `CREATE TABLE documents (uid uuid NOT NULL DEFAULT gen_random_uuid(), namespace text, name text,
	labels jsonb, spec json, PRIMARY KEY (namespace, name))`

func TestTableIsASource(t *testing.T) {
	server := pgtest.Start(t)
	conformance.TestReadOnlySource(t, func(t conformance.T, historyBytes int64) conformance.ReadOnlySource {
		return openDocuments(t, server, historyBytes)
	}, conformance.Exceptions{
		"resume/server-restart": "the case loses its data: the new table is in the same database, so the epoch is the same",
	})
}

// openDocuments returns a Source of a new table, whose writes come from another connection.
func openDocuments(t conformance.T, server *pgtest.Server, historyBytes int64) conformance.ReadOnlySource {
	url, err := server.CreateSchema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if _, err := conn.Exec(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o := postgres.Options{History: listwatch.Retention{Bytes: historyBytes}, Publication: t.Name()}
	db, err := postgres.Open(ctx, url, o, postgres.Table{
		Name: "documents", Kind: "Object", Namespace: "namespace", LabelsFrom: "labels", Spec: "spec", UID: "uid",
		Fields: []string{"spec.phase"},
	})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = db.Wait() // the error of ctx
	})
	source := db.Source("documents")
	var writing sync.Mutex // so that the next version of an object is that of the write
	return conformance.ReadOnlySource{
		Source: source, Compact: source.(interface{ Compact() }).Compact,
		Write: func(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
			writing.Lock()
			defer writing.Unlock()
			return writeDocument(ctx, conn, source, key, data)
		},
	}
}

// writeDocument writes an object, or deletes it if data is nil, and returns the version of the
// event.
func writeDocument(
	ctx context.Context, conn *pgxpool.Pool, source listwatch.Source, key listwatch.Key, data []byte,
) (listwatch.Version, error) {
	only := listwatch.Selection{Namespace: key.Namespace, Name: key.Name}
	w, err := source.Watch(ctx, listwatch.Query{Selection: only, InitialEvents: listwatch.InitialEventsNo})
	if err != nil {
		return 0, err
	}
	defer w.Close()
	var done pgconn.CommandTag
	if data == nil {
		done, err = conn.Exec(ctx, "DELETE FROM documents WHERE (namespace, name) = ($1, $2)", key.Namespace, key.Name)
	} else {
		var o struct {
			Metadata struct{ Labels json.RawMessage }
			Spec     json.RawMessage
		}
		if err := json.Unmarshal(data, &o); err != nil {
			return 0, err
		}
		_, err = conn.Exec(ctx, `INSERT INTO documents (namespace, name, labels, spec) VALUES ($1, $2, $3, $4)
			ON CONFLICT (namespace, name) DO UPDATE SET labels = EXCLUDED.labels, spec = EXCLUDED.spec`,
			key.Namespace, key.Name, text(o.Metadata.Labels), text(o.Spec))
	}
	if err != nil {
		return 0, err
	}
	if done.Delete() && done.RowsAffected() > 0 {
		var batch [1]listwatch.Event
		_, err = w.Next(ctx, batch[:])
		return batch[0].Version, err
	}
	// The write may have changed nothing, so do not wait for an event.
	page, err := source.List(ctx, listwatch.Query{Selection: only})
	if err != nil || len(page.Items) == 0 {
		return page.Version, err
	}
	return page.Items[0].Version, nil
}

func text(raw json.RawMessage) *string {
	if raw == nil {
		return nil
	}
	s := string(raw)
	return &s
}
