//go:build unix

package postgres

import (
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/examples/postgres/settings"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
	"github.com/listwatch/listwatch/watchcache"
)

func TestTableIsASource(t *testing.T) {
	server := pgtest.Start(t)
	conformance.TestReadOnlySource(t, func(t conformance.T, historyBytes int64) conformance.ReadOnlySource {
		url, err := server.CreateSchema(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pool := openTable(t, url, table, settings.Schema)
		s := runSource(t, pool, watchcache.Options{History: listwatch.Retention{Bytes: historyBytes}})
		return conformance.ReadOnlySource{Source: s, Write: writer{pool}.write, Compact: s.Compact}
	}, conformance.Exceptions{
		"resume/server-restart": "the case loses its data: a new table starts at version 1, and its database has another epoch",
	})
}
