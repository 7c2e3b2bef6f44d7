package servecmd

import (
	"strings"
	"testing"
)

func TestTablesAreReadOnlyByDefault(t *testing.T) {
	all, err := (&postgresOptions{dsn: "postgres://x", tables: []string{"orders"}}).parse()
	if err != nil || !all[0].ReadOnly {
		t.Errorf("without --writable: got %+v and %v, want a table that is read-only", all, err)
	}
	_, err = (&postgresOptions{documents: "objects"}).parse()
	if err == nil || !strings.Contains(err.Error(), "requires --postgres") {
		t.Errorf("--postgres-documents without --postgres: got %v", err)
	}
}
