package bolt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/collectiontest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
	"go.etcd.io/bbolt"
)

// openThings adds the collection that collectiontest.Write writes to.
func openThings(s *testDB) *store.Collection {
	s.Helper()
	return testkit.Must(
		s.db.Collection(store.CollectionSpec{Kind: "Thing", Namespaced: true, Fields: []string{"spec.node"}}))(s)
}

// The history holds one write, so after a restart almost all departures come from their own bucket.
func TestDifferencesOutliveRestarts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := open(t, bolt.Options{History: listwatch.Retention{Bytes: 1}, Transformer: reverser{key: "k"}})
	things, readers := openThings(s), collectiontest.NewReaders(t)
	readers.Resume(rng, things)
	for range 60 {
		for range rng.IntN(20) {
			collectiontest.Write(t, rng, things)
		}
		switch rng.IntN(4) {
		case 0:
			s.reopen()
			things = openThings(s)
		case 1:
			s.db.Compact()
		}
		readers.Resume(rng, things)
	}
	// At most one whole state for each reader.
	if readers.Whole > 8 || readers.Differences < 150 {
		t.Errorf("%d differences and %d whole states, want only differences after the first states",
			readers.Differences, readers.Whole)
	}
}

func TestRestoredBackupSendsWholeStates(t *testing.T) {
	s := open(t, bolt.Options{History: listwatch.Retention{Bytes: 1}})
	things, readers, rng := openThings(s), collectiontest.NewReaders(t), rand.New(rand.NewPCG(1, 1))
	for range 10 {
		collectiontest.Write(t, rng, things)
		readers.Resume(rng, things)
	}
	before := readers.Differences
	s.options.RestoredFromBackup = true
	s.reopen()
	readers.Resume(rng, openThings(s))
	if readers.Differences != before {
		t.Errorf("got %d differences in the new epoch, want whole states", readers.Differences-before)
	}
}

func TestMissingDepartureIsCorrupt(t *testing.T) {
	s := open(t, bolt.Options{})
	s.create("a")
	gone := s.delete("a").Version
	err := bolt.EditFile(s.db, func(tx *bbolt.Tx) error {
		return tx.Bucket(bolt.BucketOf("pods/departures")).Delete(binary.BigEndian.AppendUint64(nil, uint64(gone)))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(t, writeFile(t, readFile(t, s.path)), 0); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("got %v, want code Corrupt", err)
	}
}

func TestDeparturesAreTransformed(t *testing.T) {
	s := open(t, bolt.Options{Transformer: reverser{key: "k"}})
	if _, err := s.pods.Create(t.Context(),
		[]byte(`{"metadata":{"name":"a","namespace":"n","labels":{"app":"swordfish"}}}`)); err != nil {
		t.Fatal(err)
	}
	s.delete("a")
	s.close()
	data := readFile(t, s.path)
	if bytes.Contains(data, []byte("swordfish")) {
		t.Error("the file has the label of a deleted object, untransformed")
	}
	if !bytes.Contains(data, []byte("hsifdrows")) {
		t.Error("the file does not have the transformed text")
	}
}

// The limit for departures in memory also applies to the file.
func TestDeparturesInTheFileAreBounded(t *testing.T) {
	s := open(t, bolt.Options{History: listwatch.Retention{Bytes: 1, SinceBytes: 1}})
	start := s.pods.Stats().Horizon
	for i := range 300 {
		name := fmt.Sprint("a", i)
		s.create(name)
		s.delete(name)
	}
	if s.pods.Stats().Horizon == start {
		t.Fatal("the horizon did not move")
	}
	s.create("last") // trims
	count := 0
	err := bolt.EditFile(s.db, func(tx *bbolt.Tx) error {
		return tx.Bucket(bolt.BucketOf("pods/departures")).ForEach(func(_, _ []byte) error {
			count++
			return nil
		})
	})
	if err != nil || count > 256 {
		t.Errorf("the file has %d departures, %v, want at most the 256 in memory", count, err)
	}
	horizon := s.pods.Stats().Horizon
	s.reopen()
	if got := s.pods.Stats().Horizon; got > horizon {
		t.Errorf("the horizon after a restart is %d, want at most %d", got, horizon)
	}
}
