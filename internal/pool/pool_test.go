package pool

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// reset empties the pool.
func reset() {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	kept.buffers, kept.bytes, kept.maps = [sizeClasses + 1][][]byte{}, 0, nil
}

func TestBufferIsReusedOnceIfItFits(t *testing.T) {
	reset()
	old := Clone(bytes.Repeat([]byte("x"), 1000))
	PutBuffers(old, nil)
	for _, n := range []int{700, 3000} {
		if c := Clone(make([]byte, n)); unsafe.SliceData(c) == unsafe.SliceData(old) {
			t.Errorf("%d bytes are in a buffer of %d bytes", n, cap(old))
		}
	}
	first, second := Clone([]byte(bytes.Repeat([]byte("y"), 990))), Clone(bytes.Repeat([]byte("z"), 990))
	if unsafe.SliceData(first) != unsafe.SliceData(old) {
		t.Error("990 bytes are not in the buffer of 1,000 bytes")
	}
	if first[0] != 'y' || len(first) != 990 || second[0] != 'z' {
		t.Errorf("got %d bytes of %q and %q, want 990 of y and z: one buffer was used twice", len(first), first[0],
			second[0])
	}
}

func TestKeptBytesAreLimited(t *testing.T) {
	reset()
	for range 100_000 {
		PutBuffers(make([]byte, 1+rand.IntN(16<<10)))
	}
	if kept.bytes > maxBytes || kept.bytes < maxBytes/2 {
		t.Errorf("kept %d bytes, want about %d", kept.bytes, maxBytes)
	}
	sum := 0
	for _, buffers := range kept.buffers {
		for _, b := range buffers {
			sum += cap(b)
		}
	}
	if sum != kept.bytes {
		t.Errorf("the buffers have %d bytes, but %d are counted", sum, kept.bytes)
	}
	for range 10_000 {
		n := rand.IntN(16 << 10)
		if c := Clone(make([]byte, n)); len(c) != n || n > 4096 && cap(c) > n+n/3+sizeStep {
			t.Fatalf("Clone of %d bytes has %d bytes in a buffer of %d", n, len(c), cap(c))
		}
	}
}

func TestBuffersHaveOneOwner(t *testing.T) {
	reset()
	type owned struct {
		data []byte
		fill byte
	}
	var all []owned
	for i := range 20_000 {
		if len(all) > 0 && rand.IntN(2) == 0 {
			n := rand.IntN(len(all))
			if o := all[n]; bytes.Count(o.data, []byte{o.fill}) != len(o.data) {
				t.Fatalf("step %d: another owner has written to a buffer", i)
			}
			PutBuffers(all[n].data)
			all[n] = all[len(all)-1]
			all = all[:len(all)-1]
			continue
		}
		fill := byte(i)
		all = append(all, owned{Clone(bytes.Repeat([]byte{fill}, rand.IntN(9000))), fill})
	}
}

func TestMapIsReusedOnceAndEmpty(t *testing.T) {
	reset()
	if m := GetMap(); m != nil {
		t.Errorf("got %v from an empty pool", m)
	}
	large := map[string]string{}
	for i := range 100 {
		large[string(rune('a'+i))] = ""
	}
	PutMaps(map[string]string{"a": "b"}, nil, large)
	m := GetMap()
	if m == nil || len(m) != 0 {
		t.Errorf("got %v, want an empty map", m)
	}
	if m := GetMap(); m != nil {
		t.Errorf("got %v, want no second map", m)
	}
	for range 10_000 {
		PutMaps(map[string]string{"a": "b"})
	}
	if len(kept.maps) != maxMaps {
		t.Errorf("kept %d maps, want %d", len(kept.maps), maxMaps)
	}
}
