// Package pool keeps the memory of encoded objects that nobody reads any more for those that come next. A program that decodes a stream
// drops each object's bytes and labels at once; made anew for each, they are most of its garbage.
package pool

import "sync"

const (
	// step is what the capacities of one shelf differ by at most.
	step = 128
	// shelves is how many there are: larger buffers are not kept.
	shelves = 64
	// mostBytes is what is kept at most.
	mostBytes = 1 << 20
	// mostMaps is how many maps are kept, mostMembers how many members they may have had: a map does not shrink.
	mostMaps, mostMembers = 512, 8
)

var kept struct {
	mu sync.Mutex
	// Guarded by mu.
	shelves [shelves + 1][][]byte // by capacity, in steps, rounded down
	bytes   int
	maps    []map[string]string
}

// Clone returns a copy of data, in memory of its own that is at most one step larger than need be.
func Clone(data []byte) []byte {
	return append(take(len(data)), data...)
}

// take returns an empty buffer; nil where there is none for n bytes.
func take(n int) []byte {
	at := (n + step - 1) / step
	if at > shelves {
		return nil
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	shelf := kept.shelves[at]
	if len(shelf) == 0 {
		return nil
	}
	last := len(shelf) - 1
	buf := shelf[last]
	shelf[last] = nil
	kept.shelves[at] = shelf[:last]
	kept.bytes -= cap(buf)
	return buf[:0]
}

// Keep takes buffers that nobody will read or write any more; nil ones may be among them.
func PutBuffers(buffers ...[]byte) {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	for _, buf := range buffers {
		at := cap(buf) / step
		if at == 0 || at > shelves || kept.bytes+cap(buf) > mostBytes {
			continue
		}
		kept.shelves[at] = append(kept.shelves[at], buf)
		kept.bytes += cap(buf)
	}
}

// Map returns an empty map that nobody else has; nil where there is none.
func GetMap() map[string]string {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	last := len(kept.maps) - 1
	if last < 0 {
		return nil
	}
	m := kept.maps[last]
	kept.maps[last] = nil
	kept.maps = kept.maps[:last]
	return m
}

// KeepMaps takes maps that nobody will read or write any more; nil ones may be among them.
func PutMaps(maps ...map[string]string) {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	for _, m := range maps {
		if m == nil || len(m) > mostMembers || len(kept.maps) >= mostMaps {
			continue
		}
		clear(m)
		kept.maps = append(kept.maps, m)
	}
}
