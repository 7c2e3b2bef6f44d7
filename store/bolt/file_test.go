package bolt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store/bolt"
)

// wantOpenError checks that Open fails with the given code, that the message contains the
// words, and that Open does not change the file.
func wantOpenError(t *testing.T, path string, code listwatch.Code, words ...string) {
	t.Helper()
	before, _ := os.ReadFile(path)
	db, err := bolt.Open(path, bolt.Options{LockTimeout: -1})
	if err == nil {
		_ = db.Close()
	}
	for _, want := range append(words, path) {
		if !errors.Is(err, code) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want code %v and %q", err, code, want)
		}
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
}

func writeFile(t testing.TB, data []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "test.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	return testkit.Must(os.ReadFile(path))(t)
}

func TestOpenNamesTheProcessThatUsesTheFile(t *testing.T) {
	s := open(t, bolt.Options{})
	wantOpenError(t, s.path, listwatch.Unavailable, "in use by process "+fmt.Sprint(os.Getpid())+" (",
		"one process at a time")
}

func TestOpenWaitsForTheLock(t *testing.T) {
	s := open(t, bolt.Options{})
	o := s.create("a")
	opened := make(chan error)
	var second *bolt.DB
	go func() {
		var err error
		second, err = bolt.Open(s.path, bolt.Options{LockTimeout: time.Minute})
		opened <- err
	}()
	// Shrink replaces the file while the second Open waits for its lock. The second Open
	// must notice that it has locked the old file.
	if err := s.db.Shrink(); err != nil {
		t.Fatal(err)
	}
	s.close()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	s.db = second
	s.pods = testkit.Must(second.Collection(podSpec))(t)
	if got := s.get("a").Version; got != o.Version {
		t.Errorf("got version %d, want %d, which the first database wrote", got, o.Version)
	}
}

func TestForeignFilesAreRejected(t *testing.T) {
	wantOpenError(t, writeFile(t, nil), listwatch.Invalid, "the file is empty")
	wantOpenError(t, writeFile(t, []byte("hello")), listwatch.Invalid, "not a listwatch database")
	wantOpenError(t, writeFile(t, bytes.Repeat([]byte("hello, world. "), 10000)), listwatch.Invalid,
		"not a listwatch database")
	wantOpenError(t, writeFile(t, make([]byte, 1<<20)), listwatch.Invalid, "not a listwatch database")
	wantOpenError(t, t.TempDir(), listwatch.Invalid, "not a regular file")
	wantOpenError(t, filepath.Join(t.TempDir(), "none", "test.db"), listwatch.Invalid, "the directory does not exist")

	other := filepath.Join(t.TempDir(), "other.db")
	db, err := bbolt.Open(other, 0o600, &bbolt.Options{NoFreelistSync: true}) // as etcd does
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("key"))
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	wantOpenError(t, other, listwatch.Invalid, "a database of another program")
}

func TestFilesOfOtherFormatsAreRejected(t *testing.T) {
	for format, code := range map[string]listwatch.Code{
		"2": listwatch.Unsupported, "": listwatch.Corrupt,
		"0": listwatch.Corrupt, "x": listwatch.Corrupt,
	} {
		s := open(t, bolt.Options{})
		if err := bolt.EditFile(s.db,
			func(tx *bbolt.Tx) error {
				return tx.Bucket(bolt.HeaderBucket).Put(bolt.FormatKey,
					[]byte(format))
			}); err != nil {
			t.Fatal(err)
		}
		s.close()
		wantOpenError(t, s.path, code, "format")
	}
}

func TestReadOnlyFilesAreRejected(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can write to any file; cmd/listwatch tests this as another user")
	}
	s := open(t, bolt.Options{})
	s.close()
	if err := os.Chmod(s.path, 0o400); err != nil {
		t.Fatal(err)
	}
	wantOpenError(t, s.path, listwatch.Forbidden, "must be writable")
}

func TestShrinkLeavesNoTemporaryFile(t *testing.T) {
	s := open(t, bolt.Options{})
	s.create("a")
	if err := s.db.Shrink(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(s.path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, %v; want only the file", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file has mode %v, error %v; want 0600", info.Mode(), err)
	}
}

// filledFile returns the bytes of a database, its content as text, and its start version.
func filledFile(t testing.TB) (data []byte, content string, start listwatch.Version) {
	s := open(t, bolt.Options{})
	start = s.db.Version()
	for i := range 40 {
		if _, err := s.pods.Create(t.Context(),
			fmt.Appendf(nil, `{"metadata":{"name":"big%d","namespace":"n"},"data":%q}`, i,
				strings.Repeat("x", 100*i))); err != nil {
			t.Fatal(err)
		}
	}
	s.writeSome()
	content = strings.Join(append(s.eventsAfter(start, listwatch.Query{}), s.list(listwatch.Query{})...), "\n")
	s.close()
	return readFile(t, s.path), content, start
}

// readAll opens a file and returns the state and the history of its pods as text.
func readAll(t testing.TB, path string, start listwatch.Version) (string, error) {
	t.Helper()
	s := &testDB{TB: t, path: path}
	var err error
	if s.db, err = bolt.Open(path, bolt.Options{ShrinkThreshold: -1}); err != nil {
		return "", err
	}
	defer s.close()
	if s.pods, err = s.db.Collection(podSpec); err != nil {
		return "", err
	}
	return strings.Join(append(s.eventsAfter(start, listwatch.Query{}), s.list(listwatch.Query{})...), "\n"), nil
}

func TestTruncatedFileIsRejected(t *testing.T) {
	data, _, start := filledFile(t)
	used := usedBytes(t, data)
	lengths := []int{1, 15, 16, 100, 1000, 4095, 4096, 4097, 8191, 8192, 8193, 12288, 16384, used - 1, used - 4096}
	for range 50 {
		lengths = append(lengths, 1+rand.IntN(used-1))
	}
	for _, n := range lengths {
		path := writeFile(t, data[:n])
		_, err := readAll(t, path, start)
		if code := listwatch.CodeOf(err); code != listwatch.Corrupt && code != listwatch.Invalid ||
			!strings.Contains(fmt.Sprint(err), path) {
			t.Errorf("truncated to %d of %d bytes: got %v, want code Corrupt or Invalid", n, used, err)
		}
		if got := readFile(t, path); !bytes.Equal(got, data[:n]) {
			t.Errorf("truncated to %d of %d bytes: the file was changed", n, used)
		}
	}
}

// usedBytes returns the number of bytes that a database uses, which may be less than the
// length of the file.
func usedBytes(t testing.TB, data []byte) (n int) {
	db, err := bbolt.Open(writeFile(t, data), 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bbolt.Tx) error { n = int(tx.Size()); return nil })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return n
}

// A collection that has lost its records must not be opened as an empty collection. Records that
// have lost their declaration must not be used.
func TestMissingCollectionIsCorrupt(t *testing.T) {
	for name, damage := range map[string]func(tx *bbolt.Tx) error{
		"the records": func(tx *bbolt.Tx) error { return tx.DeleteBucket(bolt.BucketOf("pods")) },
		"the declaration": func(tx *bbolt.Tx) error {
			return tx.Bucket(bolt.HeaderBucket).Delete([]byte("resource/pods"))
		},
	} {
		s := open(t, bolt.Options{})
		s.create("a")
		if err := bolt.EditFile(s.db, damage); err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(t, writeFile(t, readFile(t, s.path)), 0); !errors.Is(err, listwatch.Corrupt) {
			t.Errorf("%s: got %v, want code Corrupt", name, err)
		}
	}
}

// A record that has disappeared, for example with a damaged page, is noticed even if no other
// record refers to it.
func TestMissingRecordIsCorrupt(t *testing.T) {
	for name, which := range map[string]int{"the first": 0, "the second": 1, "the last": 2} {
		s := open(t, bolt.Options{})
		missing := []*listwatch.Object{s.create("a"), s.create("b"), s.create("c")}[which].Version
		err := bolt.EditFile(s.db, func(tx *bbolt.Tx) error {
			return tx.Bucket(bolt.BucketOf("pods")).Delete(binary.BigEndian.AppendUint64(nil, uint64(missing)))
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(t, writeFile(t, readFile(t, s.path)), 0); !errors.Is(err, listwatch.Corrupt) {
			t.Errorf("%s: got %v, want code Corrupt", name, err)
		}
	}
}

// A changed part of the file is either detected or has no effect. The test does not change the
// two meta pages, because bbolt uses the previous transaction if the newest meta page is invalid.
func TestDamageIsNeverServed(t *testing.T) {
	data, content, start := filledFile(t)
	meta := 2 * os.Getpagesize()
	detected := 0
	for range 150 {
		damagedData := bytes.Clone(data)
		at, n := meta+rand.IntN(usedBytes(t, data)-meta), 1+rand.IntN(64)
		part := damagedData[at:min(at+n, len(data))]
		if clear(part); rand.IntN(2) == 0 {
			for i := range part {
				part[i] = byte(rand.Uint32())
			}
		}
		path := writeFile(t, damagedData)
		got, err := readAll(t, path, start)
		if err != nil {
			detected++
			// The texts may differ: a damaged page can make a part of the file that Open
			// writes look like a record.
			if _, again := readAll(t, path, start); listwatch.CodeOf(again) != listwatch.CodeOf(err) {
				t.Errorf("%d bytes at %d: got %v, and then %v", n, at, err, again)
			}
			if code := listwatch.CodeOf(err); code != listwatch.Corrupt && code != listwatch.Invalid &&
				code != listwatch.Expired && code != listwatch.Unsupported {
				t.Errorf("%d bytes at %d: got %v, want code Corrupt", n, at, err)
			}
			continue
		}
		if diff := cmp.Diff(strings.Split(content, "\n"), strings.Split(got, "\n")); diff != "" {
			t.Fatalf("%d bytes at %d (-want +got):\n%s", n, at, diff)
		}
	}
	// About 58 % of the changes are detected. The probability of fewer than 30 is below 1e-20.
	if detected < 30 {
		t.Errorf("%d of 150 damages were detected, want at least 30", detected)
	}
}

func TestShrinkReleasesFreeSpace(t *testing.T) {
	s := open(t, bolt.Options{})
	bolt.DisableSync(s.db)
	for i := range 200 {
		if _, err := s.pods.Create(t.Context(),
			fmt.Appendf(nil, `{"metadata":{"name":"p%d","namespace":"n"},"data":%q}`, i,
				strings.Repeat("x", 10000))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 199 {
		s.delete(fmt.Sprint("p", i))
	}
	s.db.Compact()
	for bolt.CountRecords(s.db, "pods") > 2 {
		runtime.Gosched()
	}
	state, size := s.list(listwatch.Query{}), fileSize(t, s.path)
	if err := s.db.Shrink(); err != nil {
		t.Fatal(err)
	}
	if now := fileSize(t, s.path); now > size/4 {
		t.Errorf("the file has %d bytes with one object, and %d before", now, size)
	}
	if diff := cmp.Diff(state, s.list(listwatch.Query{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o := s.create("after")
	s.reopen()
	if s.get("after").Version != o.Version {
		t.Error("the write after Shrink is lost")
	}
}

func TestOpenShrinksAMostlyFreeFile(t *testing.T) {
	s := open(t, bolt.Options{ShrinkThreshold: 1 << 16, History: listwatch.Retention{Bytes: 1}})
	bolt.DisableSync(s.db)
	for i := range 100 {
		if _, err := s.pods.Create(t.Context(),
			fmt.Appendf(nil, `{"metadata":{"name":"p%d","namespace":"n"},"data":%q}`, i,
				strings.Repeat("x", 10000))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		s.delete(fmt.Sprint("p", i))
	}
	s.create("a")
	size := fileSize(t, s.path)
	s.options.ShrinkThreshold = -1
	s.reopen()
	if now := fileSize(t, s.path); now != size {
		t.Errorf("the file has %d bytes, want %d: it must not shrink", now, size)
	}
	s.options.ShrinkThreshold = 1 << 16
	s.reopen()
	if now := fileSize(t, s.path); now > size/4 {
		t.Errorf("the file has %d bytes with one object, and %d before", now, size)
	}
	s.get("a")
}

func fileSize(t testing.TB, path string) int64 {
	t.Helper()
	return testkit.Must(os.Stat(path))(t).Size()
}

func TestDeletedFileIsCreatedAgain(t *testing.T) {
	s := open(t, bolt.Options{})
	last, epoch := s.create("a").Version, s.db.Epoch()
	s.close()
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	s.open()
	if s.db.Epoch() == epoch || s.db.Version() <= last {
		t.Errorf("epoch %q at %d, want another epoch than %q and a version after %d", s.db.Epoch(), s.db.Version(),
			epoch, last)
	}
	if _, err := s.pods.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: last}); !errors.Is(err,
		listwatch.Expired) {
		t.Errorf("a watch from the old file: got %v, want code Expired", err)
	}
}
