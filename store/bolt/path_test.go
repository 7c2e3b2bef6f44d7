package bolt_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/bolt"
)

func link(t testing.TB, target string) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// A link stays one: whoever opens the file by its own name must not meet another one.
func TestShrinkLeavesALinkToTheFileInPlace(t *testing.T) {
	s := open(t, bolt.Options{})
	s.close()
	file := s.path
	s.path = link(t, file)
	s.open()
	s.create("a")
	if err := s.db.Shrink(); err != nil {
		t.Fatal(err)
	}
	want := s.state(listwatch.Query{})
	if db, err := bolt.Open(file, bolt.Options{LockTimeout: -1}); err == nil {
		t.Errorf("the file could be opened twice")
		_ = db.Close()
	}
	s.close()
	s.path = file
	s.open()
	if diff := cmp.Diff(want, s.state(listwatch.Query{})); diff != "" {
		t.Errorf("by its own name (-want +got):\n%s", diff)
	}
}

func TestALinkToNothingIsRefused(t *testing.T) {
	path := link(t, "nothing.db")
	_, err := bolt.Open(path, bolt.Options{})
	if !errors.Is(err, listwatch.Invalid) {
		t.Errorf("got %v, want code Invalid", err)
	}
}

// A path is meant as it was when the file was opened.
func TestShrinkFindsTheFileFromAnotherDirectory(t *testing.T) {
	s := &tester{TB: t, path: "relative.db"}
	t.Chdir(t.TempDir())
	s.open()
	defer s.close()
	t.Chdir(t.TempDir())
	if err := s.db.Shrink(); err != nil {
		t.Error(err)
	}
}

// Where there is nothing that could have been restored the path is mistyped.
func TestACopyThatIsNotThereIsNotMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing.db")
	if _, err := bolt.Open(path, bolt.Options{RestoredFromBackup: true}); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("got %v, want code Invalid", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was made")
	}
}

// Whoever puts a backup in the place of a file that is open wants to keep the backup.
func TestShrinkReplacesNoFileButItsOwn(t *testing.T) {
	s := open(t, bolt.Options{})
	s.create("a")
	backup := writeFile(t, readFile(t, s.path))
	want := readFile(t, backup)
	if err := os.Rename(backup, s.path); err != nil {
		t.Fatal(err)
	}
	s.create("b")
	if err := s.db.Shrink(); !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("got %v, want code Unavailable", err)
	}
	if !bytes.Equal(want, readFile(t, s.path)) {
		t.Error("the backup is gone")
	}
	if beside, err := os.ReadDir(filepath.Dir(s.path)); err != nil || len(beside) != 1 {
		t.Errorf("got %v, %v beside the file, want nothing", beside, err)
	}
}
