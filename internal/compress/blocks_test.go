package compress

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/racetest"
)

// pieces returns n texts of about size bytes, of which no two are equal.
func pieces(n, size int) (all [][]byte) {
	for i := range n {
		from := rand.New(rand.NewPCG(uint64(i), 1))
		p := fmt.Appendf(nil, `{"metadata":{"name":"thing-%d"},"data":"`, i)
		for len(p) < size {
			p = fmt.Appendf(p, "%d ", from.IntN(1000))
		}
		all = append(all, append(p, '"', '}', ','))
	}
	return all
}

// compressWith returns the gzip member that a BlockWriter writes for the pieces.
func compressWith(t *testing.T, c *BlockCache, pieces [][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := c.NewWriter(&out)
	for _, p := range pieces {
		if _, err := w.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestBlocksAreOneGzipMember(t *testing.T) {
	c := NewBlockCache(1 << 20)
	for _, want := range [][][]byte{
		nil, pieces(1, 0), pieces(10, 100), pieces(1000, 1000), pieces(2, maxBlock+1), pieces(3, 10_000),
		{bytes.Repeat([]byte("same"), 1<<18)},
	} {
		for range 2 { // the second text comes from the cache
			in := bytes.NewReader(compressWith(t, c, want))
			z, err := gzip.NewReader(in)
			if err != nil {
				t.Fatal(err)
			}
			z.Multistream(false)
			got, err := io.ReadAll(z)
			if err != nil || !bytes.Equal(got, bytes.Join(want, nil)) || in.Len() != 0 {
				t.Errorf("%d pieces: got %d bytes, %v, with %d bytes after the member", len(want), len(got), err,
					in.Len())
			}
		}
	}
}

func TestEqualTextsAreCompressedOnce(t *testing.T) {
	c := NewBlockCache(8 << 20)
	all := pieces(1000, 2000)
	compressWith(t, c, all)
	used := c.Used()
	compressWith(t, c, all)
	if again := c.Used(); used == 0 || again != used {
		t.Errorf("got %d bytes after one text, and %d after the same text", used, again)
	}
	// The seeds of a cache decide where blocks end, so the share differs from run to run: it is
	// 0.13 on average, and greater than 0.3 once in 400 runs. It would be 0.9 if no later block
	// were found.
	compressWith(t, c, slices.Delete(all, 100, 101))
	if more := c.Used() - used; more == 0 || more > used/2 {
		t.Errorf("a text without one of the pieces added %d bytes to %d, want at most half", more, used)
	}
}

func TestBlocksAreHardlyLargerThanAWhole(t *testing.T) {
	all := pieces(1000, 2000)
	var whole bytes.Buffer
	z, _ := gzip.NewWriterLevel(&whole, gzip.BestSpeed)
	_, _ = z.Write(bytes.Join(all, nil))
	_ = z.Close()
	if n := len(compressWith(t, NewBlockCache(0), all)); n > whole.Len()*11/10 {
		t.Errorf("got %d bytes in blocks, %d as a whole; want at most a tenth more", n, whole.Len())
	}
}

func TestBlockCacheKeepsItsLimit(t *testing.T) {
	for _, limit := range []int64{0, 256 << 10} {
		c := NewBlockCache(limit)
		for i := range racetest.Rounds(10) {
			compressWith(t, c, pieces(500, 1000+i))
			if used := c.Used(); used > limit {
				t.Fatalf("got %d bytes, want at most %d", used, limit)
			}
		}
	}
}

func TestUnusedBlocksAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewBlockCache(8 << 20)
		compressWith(t, c, pieces(100, 2000))
		for range 5 {
			time.Sleep(keepBlocks)
			compressWith(t, c, pieces(100, 2000))
		}
		if c.Used() == 0 {
			t.Error("blocks that are used were dropped")
		}
		time.Sleep(2 * keepBlocks)
		synctest.Wait()
		if used := c.Used(); used != 0 {
			t.Errorf("%d bytes are left after %v", used, 2*keepBlocks)
		}
	})
}

func TestConcurrentWritersShareBlocks(t *testing.T) {
	c := NewBlockCache(8 << 20)
	all := pieces(racetest.Rounds(1000), 2000)
	want := compressWith(t, NewBlockCache(8<<20), all)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			z, err := gzip.NewReader(bytes.NewReader(compressWith(t, c, all)))
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, bytes.Join(all, nil)) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
	writers.Wait()
	if used, limit := c.Used(), int64(len(want))*11/10; used > limit {
		t.Errorf("8 writers of one text left %d bytes, want at most %d", used, limit)
	}
}
