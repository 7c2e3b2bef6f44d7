// Package pool reuses the memory of encoded objects. A program that decodes a stream no
// longer needs the bytes and the labels of an object once it has decoded the object.
// Allocating them for each object would cause most of the garbage.
package pool

import "sync"

const (
	// sizeStep is the difference between the capacities of two successive size classes.
	sizeStep = 128
	// sizeClasses is the number of size classes. Larger buffers are not kept.
	sizeClasses = 64
	// maxBytes is the maximum number of bytes kept.
	maxBytes = 1 << 20
	// maxMaps is the maximum number of maps kept. A map that had more than maxMembers
	// members is not kept, because maps never release memory.
	maxMaps, maxMembers = 512, 8
)

var kept struct {
	mu sync.Mutex
	// Guarded by mu.
	buffers [sizeClasses + 1][][]byte // indexed by capacity / sizeStep
	bytes   int
	maps    []map[string]string
}

// Clone returns a copy of data. Its capacity may be slightly greater than necessary.
func Clone(data []byte) []byte {
	return append(Buffer(len(data)), data...)
}

// Buffer returns an empty buffer with room for n bytes, or nil if none is kept.
func Buffer(n int) []byte {
	class := (n + sizeStep - 1) / sizeStep
	if class > sizeClasses {
		return nil
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	buffers := kept.buffers[class]
	if len(buffers) == 0 {
		return nil
	}
	last := len(buffers) - 1
	buf := buffers[last]
	buffers[last] = nil
	kept.buffers[class] = buffers[:last]
	kept.bytes -= cap(buf)
	return buf[:0]
}

// PutBuffers keeps buffers for reuse. The caller must not use them afterwards. nil buffers are
// ignored.
func PutBuffers(buffers ...[]byte) {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	for _, buf := range buffers {
		class := cap(buf) / sizeStep
		if class == 0 || class > sizeClasses || kept.bytes+cap(buf) > maxBytes {
			continue
		}
		kept.buffers[class] = append(kept.buffers[class], buf)
		kept.bytes += cap(buf)
	}
}

// GetMap returns an empty map, or nil if none is kept.
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

// PutMaps keeps maps for reuse. The caller must not use them afterwards. nil maps are ignored.
func PutMaps(maps ...map[string]string) {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	for _, m := range maps {
		if m == nil || len(m) > maxMembers || len(kept.maps) >= maxMaps {
			continue
		}
		clear(m)
		kept.maps = append(kept.maps, m)
	}
}
