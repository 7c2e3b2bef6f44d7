package history

import (
	"hash/maphash"
	"maps"
	"math/bits"
	"reflect"

	"github.com/listwatch/listwatch"
)

// sharedMaps holds each distinct map of labels or fields of the current objects once. Objects of
// one kind often have equal labels, and a map with a few members takes several hundred bytes. It is
// guarded by Log.mu.
type sharedMaps struct {
	seed  maphash.Seed
	maps  map[uint64]*sharedMap // by hash; of maps with the same hash only one is shared
	bytes int64                 // the memory of all maps in use, shared or not
}

type sharedMap struct {
	members map[string]string
	users   int
}

func newSharedMaps() *sharedMaps {
	return &sharedMaps{seed: maphash.MakeSeed(), maps: make(map[uint64]*sharedMap)}
}

// exchange notes that o becomes current in place of old. Either may be nil. It returns o, or a copy
// of o that shares equal maps with other objects.
func (s *sharedMaps) exchange(old, o *listwatch.Object) *listwatch.Object {
	oldLabels, oldFields := mapsOf(old)
	ownLabels, ownFields := mapsOf(o)
	labels, fields := s.exchangeMap(oldLabels, ownLabels), s.exchangeMap(oldFields, ownFields)
	if isSameMap(labels, ownLabels) && isSameMap(fields, ownFields) {
		return o
	}
	shared := *o // other readers may have o
	shared.Labels, shared.Fields = labels, fields
	return &shared
}

func mapsOf(o *listwatch.Object) (labels, fields map[string]string) {
	if o == nil {
		return nil, nil
	}
	return o.Labels, o.Fields
}

// exchangeMap is like exchange, for the labels or the fields of an object. It does not search for a
// map that has not changed, as in most updates.
func (s *sharedMaps) exchangeMap(old, m map[string]string) map[string]string {
	if len(m) > 0 && maps.Equal(old, m) {
		return old
	}
	s.release(old)
	return s.acquire(m)
}

// shareMaps reports whether a and b have the same labels and fields in memory.
func shareMaps(a, b *listwatch.Object) bool {
	return isSameMap(a.Labels, b.Labels) && isSameMap(a.Fields, b.Fields)
}

func isSameMap(a, b map[string]string) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func (s *sharedMaps) acquire(m map[string]string) map[string]string {
	if len(m) == 0 {
		return m
	}
	hash := s.hash(m)
	known := s.maps[hash]
	if known != nil && maps.Equal(known.members, m) {
		known.users++
		return known.members
	}
	if known == nil {
		s.maps[hash] = &sharedMap{members: m, users: 1}
	}
	s.bytes += mapBytes(m)
	return m
}

func (s *sharedMaps) release(m map[string]string) {
	if len(m) == 0 {
		return
	}
	hash := s.hash(m)
	known := s.maps[hash]
	if known != nil && maps.Equal(known.members, m) {
		if known.users--; known.users > 0 {
			return
		}
		delete(s.maps, hash)
	}
	s.bytes -= mapBytes(m)
}

// hash returns a hash of m that does not depend on the order of its members.
func (s *sharedMaps) hash(m map[string]string) (sum uint64) {
	for k, v := range m {
		sum += maphash.String(s.seed, k) ^ bits.RotateLeft64(maphash.String(s.seed, v), 17)
	}
	return sum
}

// mapBytes estimates the memory of m: a map of Go has 8 slots or, if it has more than 8 members, a
// power of two of which at most seven eighths are used. Each string is an allocation.
func mapBytes(m map[string]string) int64 {
	const header, slot, stringStep = 64, 34, 16
	slots := 8
	for len(m) > slots || slots > 8 && len(m) > slots/8*7 {
		slots *= 2
	}
	n := header + slot*slots
	for k, v := range m {
		n += (len(k)+stringStep-1)/stringStep*stringStep + (len(v)+stringStep-1)/stringStep*stringStep
	}
	return int64(n)
}
