package bolt_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// Shrink must not replace a symbolic link with a file.
func TestShrinkKeepsSymbolicLinks(t *testing.T) {
	s := open(t, bolt.Options{})
	s.close()
	file := s.path
	s.path = link(t, file)
	s.open()
	s.create("a")
	if err := s.db.Shrink(); err != nil {
		t.Fatal(err)
	}
	want := s.list(listwatch.Query{})
	if db, err := bolt.Open(file, bolt.Options{LockTimeout: -1}); err == nil {
		t.Errorf("the locked file was opened a second time")
		_ = db.Close()
	}
	s.close()
	s.path = file
	s.open()
	if diff := cmp.Diff(want, s.list(listwatch.Query{})); diff != "" {
		t.Errorf("the content without the link (-want +got):\n%s", diff)
	}
}

func TestDanglingLinkIsRejected(t *testing.T) {
	path := link(t, "nothing.db")
	_, err := bolt.Open(path, bolt.Options{})
	if !errors.Is(err, listwatch.Invalid) {
		t.Errorf("got %v, want code Invalid", err)
	}
}

// A relative path is relative to the working directory at the time of Open.
func TestShrinkWorksAfterChdir(t *testing.T) {
	s := &testDB{TB: t, path: "relative.db"}
	t.Chdir(t.TempDir())
	s.open()
	defer s.close()
	t.Chdir(t.TempDir())
	if err := s.db.Shrink(); err != nil {
		t.Error(err)
	}
}

// If the file to restore does not exist, the path is probably mistyped.
func TestRestoredFileMustExist(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing.db")
	if _, err := bolt.Open(path, bolt.Options{RestoredFromBackup: true}); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("got %v, want code Invalid", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("Open created a file")
	}
}

func TestOverwrittenFileIsLeftAlone(t *testing.T) {
	other := open(t, bolt.Options{})
	other.close()
	for name, content := range map[string]func(now, before []byte) []byte{
		"nothing":         func(_, _ []byte) []byte { return nil },
		"half":            func(now, _ []byte) []byte { return now[:len(now)/2] },
		"more":            func(now, _ []byte) []byte { return append(now, 0) },
		"another program": func(now, _ []byte) []byte { return bytes.Repeat([]byte("x"), len(now)) },
		"another file":    func(_, _ []byte) []byte { return readFile(t, other.path) },
		"an older state":  func(_, before []byte) []byte { return before },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, bolt.Options{})
			s.create("a")
			before := readFile(t, s.path)
			s.create("b")
			if err := s.db.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := s.list(listwatch.Query{})
			// Like cp, WriteFile keeps the file and replaces its content.
			overwritten := content(readFile(t, s.path), before)
			if err := os.WriteFile(s.path, overwritten, 0o600); err != nil {
				t.Fatal(err)
			}
			_, writeErr := s.pods.Create(t.Context(), pod("c", 0))
			for what, err := range map[string]error{
				"a write": writeErr, "Ready": s.db.Ready(t.Context()), "Shrink": s.db.Shrink(),
				"Backup": s.db.Backup(filepath.Join(t.TempDir(), "backup")),
			} {
				if !errors.Is(err, listwatch.Unavailable) ||
					!strings.Contains(err.Error(), "overwritten while it was open") {
					t.Errorf("%s: got %v, want that the file was overwritten", what, err)
				}
			}
			if size, _ := s.db.Size(); size != int64(len(overwritten)) {
				t.Errorf("Size: got %d, want %d", size, len(overwritten))
			}
			if diff := cmp.Diff(want, s.list(listwatch.Query{})); diff != "" {
				t.Errorf("the list has changed (-want +got):\n%s", diff)
			}
			s.close()
			if !bytes.Equal(readFile(t, s.path), overwritten) {
				t.Error("the database has changed the content that overwrote it")
			}
		})
	}
}

// If an operator has replaced the open file with a backup, Shrink must not overwrite the
// backup.
func TestShrinkKeepsAReplacedFile(t *testing.T) {
	s := open(t, bolt.Options{})
	s.create("a")
	backup := writeFile(t, readFile(t, s.path))
	want := readFile(t, backup)
	if err := os.Rename(backup, s.path); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Shrink(); !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("got %v, want code Unavailable", err)
	}
	if !bytes.Equal(want, readFile(t, s.path)) {
		t.Error("the backup was replaced")
	}
	if entries, err := os.ReadDir(filepath.Dir(s.path)); err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, %v; want only the file", entries, err)
	}
}

func TestWritesNeedTheFileAtItsPath(t *testing.T) {
	for _, tt := range []struct {
		name     string
		displace func(path, moved string) error
	}{
		{"moved", os.Rename},
		{"replaced", func(path, moved string) error {
			return errors.Join(os.Rename(path, moved), os.WriteFile(path, []byte("another file"), 0o600))
		}},
		{"unlinked, with another hard link", func(path, moved string) error {
			return errors.Join(os.Link(path, moved), os.Remove(path))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, bolt.Options{})
			s.create("a")
			if err := s.db.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			moved := s.path + ".moved"
			if err := tt.displace(s.path, moved); err != nil {
				t.Fatal(err)
			}
			_, writeErr := s.pods.Create(t.Context(), pod("b", 0))
			unlock := bolt.Lock(s.db)
			busyErr := s.db.Ready(t.Context())
			unlock()
			for _, err := range []error{writeErr, busyErr, s.db.Ready(t.Context())} {
				if !errors.Is(err, listwatch.Unavailable) || !strings.Contains(err.Error(), "deleted or replaced") ||
					strings.Contains(err.Error(), s.path) {
					t.Errorf("got %v, want code Unavailable without the path", err)
				}
			}
			if err := os.Rename(moved, s.path); err != nil {
				t.Fatal(err)
			}
			s.create("b")
			if err := s.db.Ready(t.Context()); err != nil {
				t.Errorf("after the return of the file: %v", err)
			}
			s.reopen()
			if got := len(s.list(listwatch.Query{})); got != 3 {
				t.Errorf("the file has %d objects, want 2", got-1)
			}
		})
	}
}
