// Package sharedmaps shares equal maps of labels and fields between objects.
package sharedmaps

import (
	"hash/maphash"
	"maps"
	"math/bits"
	"reflect"

	"github.com/listwatch/listwatch"
)

// A Set holds each distinct map of labels or fields of the current objects once. Objects of
// one kind often have equal labels, and a map with a few members takes several hundred bytes. It is
// not safe for concurrent use.
type Set struct {
	seed  maphash.Seed
	maps  map[uint64]*sharedMap // by hash; of maps with the same hash only one is shared
	Bytes int64                 // the memory of all maps in use, shared or not
}

type sharedMap struct {
	members map[string]string
	users   int
}

// New returns an empty Set.
func New() *Set {
	return &Set{seed: maphash.MakeSeed(), maps: make(map[uint64]*sharedMap)}
}

// Len returns the number of maps.
func (s *Set) Len() int { return len(s.maps) }

// Exchange notes that o becomes current in place of old. Either may be nil. It returns o, or a copy
// of o that shares equal maps with other objects.
func (s *Set) Exchange(old, o *listwatch.Object) *listwatch.Object {
	oldLabels, oldFields := mapsOf(old)
	ownLabels, ownFields := mapsOf(o)
	labels, fields := s.exchangeMap(oldLabels, ownLabels), s.exchangeMap(oldFields, ownFields)
	if IsSameMap(labels, ownLabels) && IsSameMap(fields, ownFields) {
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
func (s *Set) exchangeMap(old, m map[string]string) map[string]string {
	if len(m) > 0 && maps.Equal(old, m) {
		return old
	}
	s.release(old)
	return s.acquire(m)
}

// Share reports whether a and b have the same labels and fields in memory.
func Share(a, b *listwatch.Object) bool {
	return IsSameMap(a.Labels, b.Labels) && IsSameMap(a.Fields, b.Fields)
}

// IsSameMap reports whether a and b are the same map, or both nil.
func IsSameMap(a, b map[string]string) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func (s *Set) acquire(m map[string]string) map[string]string {
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
	s.Bytes += mapBytes(m)
	return m
}

func (s *Set) release(m map[string]string) {
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
	s.Bytes -= mapBytes(m)
}

// hash returns a hash of m that does not depend on the order of its members.
func (s *Set) hash(m map[string]string) (sum uint64) {
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
