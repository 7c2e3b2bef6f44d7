package framing

import (
	"io"
	"slices"
	"testing"
)

// A sizedReads is a reader of bursts: each element of sizes is a number of bytes that arrive
// together. buffers records the sizes of the read buffers.
type sizedReads struct {
	sizes   []int
	buffers []int
}

func (r *sizedReads) Read(p []byte) (int, error) {
	r.buffers = append(r.buffers, len(p))
	if len(r.sizes) == 0 {
		return 0, io.EOF
	}
	n := min(r.sizes[0], len(p))
	if r.sizes[0] -= n; r.sizes[0] == 0 {
		r.sizes = r.sizes[1:]
	}
	return n, nil
}

func TestReadBufferGrowsOnlyDuringBursts(t *testing.T) {
	r := &sizedReads{sizes: []int{100, 200 << 10, 100, 10 << 10, 100, 100}}
	in := newInput(r, 1<<30)
	for {
		w, err := in.available()
		if err != nil {
			break
		}
		in.take(len(w))
	}
	want := []int{
		bufferSize,                      // 100 bytes
		bufferSize,                      // the burst begins
		burstSize, burstSize, burstSize, // 192 of its 200 KiB
		burstSize,             // 100 bytes
		bufferSize, burstSize, // 10 KiB
		bufferSize, bufferSize, bufferSize, // 100 bytes each, and the end
	}
	if !slices.Equal(r.buffers, want) {
		t.Errorf("got buffers %v, want %v", r.buffers, want)
	}
}
