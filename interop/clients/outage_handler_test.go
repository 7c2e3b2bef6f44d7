package clients

import (
	"fmt"
	"strconv"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// An eventChecker is the handler of an informer. It compares each notification with the
// earlier notifications.
type eventChecker struct {
	mu sync.Mutex
	// Guarded by mu.
	newest     uint64
	versions   map[string]uint64 // the newest version of every key, deleted or not
	deleted    map[string]bool
	seen       map[uint64]bool // all versions seen
	tombstones int             // deletions that the informer inferred from a list
	violations []string        // the first inconsistent notifications
}

var _ cache.ResourceEventHandler = (*eventChecker)(nil)

func newEventChecker() *eventChecker {
	return &eventChecker{versions: map[string]uint64{}, deleted: map[string]bool{}, seen: map[uint64]bool{}}
}

func (h *eventChecker) OnAdd(obj any, _ bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key, version := h.record("add", obj)
	if _, known := h.versions[key]; known && !h.deleted[key] {
		h.report("add of %s at version %d, but it existed", key, version)
	}
	h.versions[key], h.deleted[key] = version, false
}

func (h *eventChecker) OnUpdate(old, obj any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key, version := h.record("update", obj)
	if from := podVersion(old.(*v1.Pod)); h.deleted[key] || h.versions[key] != from {
		h.report("update of %s from version %d, but it was at %d, deleted: %v", key, from, h.versions[key], h.deleted[key])
	}
	h.versions[key] = version
}

func (h *eventChecker) OnDelete(obj any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		h.tombstones++
		obj = d.Obj
	}
	key, version := h.record("delete", obj)
	if _, known := h.versions[key]; !known || h.deleted[key] {
		h.report("delete of %s at version %d, but it did not exist", key, version)
	}
	h.versions[key], h.deleted[key] = version, true
}

// record records the version of obj and returns its key and version. For messages, the caller
// passes the kind of the notification as how. The caller must hold mu.
func (h *eventChecker) record(how string, obj any) (string, uint64) {
	pod := obj.(*v1.Pod)
	key, version := pod.Namespace+"/"+pod.Name, podVersion(pod)
	if version < h.versions[key] {
		h.report("%s of %s at version %d, older than version %d", how, key, version, h.versions[key])
	}
	h.seen[version] = true
	h.newest = max(h.newest, version)
	return key, version
}

func (h *eventChecker) report(format string, args ...any) {
	if len(h.violations) < 10 {
		h.violations = append(h.violations, fmt.Sprintf(format, args...))
	}
}

func podVersion(pod *v1.Pod) uint64 {
	version, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if err != nil {
		panic(err) // the store's versions are numbers
	}
	return version
}

// reached reports whether the handler has seen the given version or a later one.
func (h *eventChecker) reached(version uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest >= version
}

// missing returns the given versions that the handler has not seen.
func (h *eventChecker) missing(versions []uint64) (missing []uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range versions {
		if !h.seen[v] {
			missing = append(missing, v)
		}
	}
	return missing
}

func (h *eventChecker) allViolations() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.violations
}

func (h *eventChecker) tombstoneCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tombstones
}
