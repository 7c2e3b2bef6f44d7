package postgres

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
)

// insertMessage returns an insert into relation 7 of the given texts.
func insertMessage(texts ...string) []byte {
	m := []byte{'I', 0, 0, 0, 7, 'N'}
	m = binary.BigEndian.AppendUint16(m, uint16(len(texts)))
	for _, text := range texts {
		m = append(m, 't')
		m = binary.BigEndian.AppendUint32(m, uint32(len(text)))
		m = append(m, text...)
	}
	return m
}

func FuzzMessages(f *testing.F) {
	f.Add(insertMessage("1", "a"))
	f.Add([]byte("B\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02"))
	f.Add([]byte("R\x00\x00\x00\x07public\x00t\x00d\x00\x01\x01id\x00\x00\x00\x00\x17\xff\xff\xff\xff"))
	f.Add([]byte("U\x00\x00\x00\x07K\x00\x01nN\x00\x01u"))
	f.Add([]byte("D\x00\x00\x00\x07O\x00\x01n"))
	f.Add([]byte("T\x00\x00\x00\x02\x00\x00\x00\x00\x07\x00\x00\x00\x08"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseMessage(data)
		if err != nil {
			return
		}
		if c, ok := m.(change); ok && c.new == nil && c.old == nil {
			t.Errorf("%q is a change without a row", data)
		}
	})
}

func TestMessagesOfAnyLengthAreChecked(t *testing.T) {
	whole := insertMessage("one", "two")
	for n := range whole {
		if m, err := parseMessage(whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are %v, want an error", n, len(whole), m)
		}
	}
}

// The last change of a transaction has the version of the transaction's end. Each change has its
// own versions, as long as the commit record provides enough of them.
func TestVersionsLieWithinTheirCommitRecord(t *testing.T) {
	at := commit{commit: 1000, end: 1034}
	for _, n := range []int{1, 2, 100, 4351, 4352, 20_000} {
		var tx transaction
		for range n {
			tx.add(rowChange{table: new(table)})
		}
		var all []listwatch.Version
		_ = tx.versions(at, func(v listwatch.Version, _ *rowChange) error {
			all = append(all, v)
			return nil
		})
		if !slices.IsSorted(all) {
			t.Errorf("the versions of %d changes are not sorted", n)
		}
		if all[0]-1 <= at.commit.version() || all[n-1] != at.end.version() {
			t.Errorf("%d changes have versions from %d to %d, want them after %d and up to %d",
				n, all[0], all[n-1], at.commit.version()+1, at.end.version())
		}
		if distinct := len(slices.Compact(slices.Clone(all))); n <= 4352 && distinct != n {
			t.Errorf("%d changes have %d versions", n, distinct)
		}
	}
}

// The rows of tables that only other servers serve need no memory, but have their versions.
func TestRowsOfOtherTablesAreOnlyCounted(t *testing.T) {
	var tx transaction
	served := new(table)
	for _, of := range []*table{nil, served, nil} {
		tx.add(rowChange{table: of})
	}
	_ = tx.versions(commit{commit: 1000, end: 1034}, func(v listwatch.Version, c *rowChange) error {
		if want := lsn(1034).version() - perChange; c.table != served || v != want {
			t.Errorf("the change of %p has version %d, want %d", c.table, v, want)
		}
		return nil
	})
	if len(tx.changes) != 1 {
		t.Errorf("the transaction holds %d changes, want 1", len(tx.changes))
	}
}
