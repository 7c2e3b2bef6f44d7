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
	_, err = (&postgresOptions{dsn: "postgres://x"}).parse()
	if err == nil || !strings.Contains(err.Error(), "--table") {
		t.Errorf("--postgres without a table: got %v", err)
	}
}
