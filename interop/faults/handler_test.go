package faults

import (
	"fmt"
	"strconv"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// A handler is told what an informer learns and holds it against what it was told before.
type handler struct {
	mu sync.Mutex
	// Guarded by mu.
	newest     uint64
	last       map[string]uint64 // the version of every key, that of its end where it is gone
	gone       map[string]bool
	seen       map[uint64]bool // versions
	tombstones int             // deletes that the informer noticed by a list
	wrong      []string        // what should not have come
}

var _ cache.ResourceEventHandler = (*handler)(nil)

func newHandler() *handler {
	return &handler{last: map[string]uint64{}, gone: map[string]bool{}, seen: map[uint64]bool{}}
}

func (h *handler) OnAdd(obj any, _ bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key, version := h.came("add", obj)
	if _, known := h.last[key]; known && !h.gone[key] {
		h.complain("%s was added at %d though it was there", key, version)
	}
	h.last[key], h.gone[key] = version, false
}

func (h *handler) OnUpdate(old, obj any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key, version := h.came("update", obj)
	if from := versionOf(old.(*v1.Pod)); h.gone[key] || h.last[key] != from {
		h.complain("%s was updated from %d, but it was at %d, gone: %v", key, from, h.last[key], h.gone[key])
	}
	h.last[key] = version
}

func (h *handler) OnDelete(obj any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		h.tombstones++
		obj = d.Obj
	}
	key, version := h.came("delete", obj)
	if _, known := h.last[key]; !known || h.gone[key] {
		h.complain("%s was deleted at %d though it was not there", key, version)
	}
	h.last[key], h.gone[key] = version, true
}

// came notes that obj was seen and returns its key and version.
func (h *handler) came(how string, obj any) (string, uint64) {
	pod := obj.(*v1.Pod)
	key, version := pod.Namespace+"/"+pod.Name, versionOf(pod)
	if version < h.last[key] {
		h.complain("%s of %s went back from version %d to %d", how, key, h.last[key], version)
	}
	h.seen[version] = true
	h.newest = max(h.newest, version)
	return key, version
}

func (h *handler) complain(format string, args ...any) {
	if len(h.wrong) < 10 {
		h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
	}
}

func versionOf(pod *v1.Pod) uint64 {
	version, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if err != nil {
		panic(err) // the store has no others
	}
	return version
}

// reached reports whether something of version, or newer, was seen.
func (h *handler) reached(version uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest >= version
}

// missing returns which of versions were not seen.
func (h *handler) missing(versions []uint64) (missing []uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range versions {
		if !h.seen[v] {
			missing = append(missing, v)
		}
	}
	return missing
}

func (h *handler) complaints() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wrong
}

func (h *handler) deletesByList() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tombstones
}
