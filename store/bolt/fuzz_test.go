package bolt_test

import (
	"bytes"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/bolt"
	"go.etcd.io/bbolt"
)

// FuzzOpenDamaged opens a database after overwriting a part of its file. Open must either
// fail or return the original content, and must not panic or hang. The meta pages are not
// overwritten: they have checksums of their own, and bbolt can work without one of them.
func FuzzOpenDamaged(f *testing.F) {
	data, content, start := filledFile(f)
	f.Add(uint32(3*4096), []byte{1, 2, 3})
	f.Add(uint32(5*4096+8), []byte{0xff, 0xff})
	f.Add(uint32(9*4096), bytes.Repeat([]byte{0}, 4096))
	f.Fuzz(func(t *testing.T, at uint32, part []byte) {
		damaged := bytes.Clone(data)
		if at = at % uint32(len(data)); at < 2*4096 {
			return
		}
		copy(damaged[at:], part)
		got, err := readAll(t, writeFile(t, damaged), start)
		if err == nil && got != content {
			t.Errorf("%x at %d: got\n%s\nwant\n%s", part, at, got, content)
		}
	})
}

// FuzzHeader opens a database with arbitrary values in its header.
func FuzzHeader(f *testing.F) {
	data, _, start := filledFile(f)
	f.Add("format", []byte("1"))
	f.Add("format", []byte("18446744073709551616"))
	f.Add("last", []byte("\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Add("floor/pods", []byte("\x00\x00\x00"))
	f.Add("resource/pods", []byte(`{"kind":"Pod"}`))
	f.Add("epoch", []byte(nil))
	f.Add("tally/pods", make([]byte, 16))
	f.Add("probe", []byte("x"))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		path := writeFile(t, data)
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		putErr := db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bolt.HeaderBucket).Put([]byte(key), value) })
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if putErr != nil {
			return // bbolt does not accept this key
		}
		if _, err := readAll(t, path, start); err != nil && listwatch.CodeOf(err) == listwatch.Unknown {
			t.Errorf("%s = %q: got %v, want an error with a code", key, value, err)
		}
	})
}
