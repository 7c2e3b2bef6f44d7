package compress

import (
	"bytes"
	"io"
	"testing"

	"github.com/listwatch/listwatch/internal/racetest"
)

// countedReads counts the calls of Read, and returns at most limit bytes at once.
type countedReads struct {
	in    bytes.Reader
	limit int
	calls int
}

func (r *countedReads) Read(p []byte) (int, error) {
	r.calls++
	return r.in.Read(p[:min(len(p), r.limit)])
}

func TestReaderReadsBurstsInLargePieces(t *testing.T) {
	text := bytes.Join(pieces(racetest.Rounds(2000), 2000), nil)
	member := compressWith(t, NewBlockCache(0), [][]byte{text})
	for limit, calls := range map[int]int{
		1 << 20: len(member)/(64<<10) + 4,
		1000:    len(member)/1000 + 4,
	} {
		in := &countedReads{limit: limit}
		in.in.Reset(member)
		r, err := NewReader(Gzip, in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("got %d bytes, %v; want %d", len(got), err, len(text))
		}
		if in.calls > calls {
			t.Errorf("%d bytes, at most %d at once, took %d reads, want at most %d", len(member), limit,
				in.calls, calls)
		}
		if r.in.burst != nil {
			t.Error("the reader holds a large buffer after all bytes were read")
		}
	}
}
