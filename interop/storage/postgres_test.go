//go:build unix

package storage

import (
	"testing"

	"github.com/listwatch/listwatch/interop/internal/pgtest"
	"github.com/listwatch/listwatch/store/postgres"
)

const versionsGrow = "the version of the database grows without writes to its collections"

// postgresExceptions are the tests that documents in PostgreSQL cannot pass, and why.
var postgresExceptions = map[string]string{
	"RunTestCreateWithTTL":              "documents have no time to live",
	"RunTestGuaranteedUpdateWithTTL":    "documents have no time to live",
	"RunTestConsistentList":             versionsGrow,
	"RunTestList":                       versionsGrow,
	"RunTestListContinuation":           versionsGrow,
	"RunTestListContinuationWithFilter": versionsGrow,
	"RunWatchSemantics":                 "a new database has no history since version 1",
	"RunTestCompactRevision":            "the history is compacted to the newest version only",
	"RunTestKeySchema":                  "a document must have a name",
	"RunTestGuaranteedUpdateChecksStoredData": "an UPDATE that changes nothing is no event, so the object keeps its " +
		"version",
}

// TestPostgres runs the suite over documents in PostgreSQL. Each test has a schema of its own, with
// a table and a publication.
func TestPostgres(t *testing.T) {
	server := pgtest.Start(t)
	runSuite(t, func(t testing.TB) database {
		url, err := server.CreateSchema(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		db, err := postgres.Open(t.Context(), url, postgres.Options{Publication: t.Name()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() }) // always nil
		return db
	}, postgresExceptions)
}
