package servecmd

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
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

func TestProblemsAreSeparated(t *testing.T) {
	err := separate(errors.Join(io.EOF, errors.New("no table: CREATE TABLE a ()")))
	const want = "EOF; no table: CREATE TABLE a (); (listwatch doctor, with the same flags, prints one per line)"
	got := strings.Replace(cli.OneLine(err), cli.CommandName(), "listwatch", 1)
	if got != want || !errors.Is(err, io.EOF) {
		t.Errorf("got %q, want %q, which is io.EOF, too", got, want)
	}
	if single := separate(errors.Join(io.EOF)); single.Error() != "EOF" {
		t.Errorf("one problem: got %v, want EOF", single)
	}
}
