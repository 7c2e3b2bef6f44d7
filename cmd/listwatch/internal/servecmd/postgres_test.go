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
}

// A flag that has no effect is a mistake.
func TestFlagsAboutPostgresRequireIt(t *testing.T) {
	for want, o := range map[string]*postgresOptions{
		"--postgres-documents requires --postgres": {documents: "objects"},
		"--show-exceptions requires --postgres":    {exceptions: true},
		"--writable requires --table":              {dsn: "postgres://x", writable: true},
	} {
		if _, err := o.parse(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
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
