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

func (e *eventChecker) OnAdd(obj any, _ bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key, version := e.record("add", obj)
	if _, known := e.versions[key]; known && !e.deleted[key] {
		e.report("add of %s at version %d, but it existed", key, version)
	}
	e.versions[key], e.deleted[key] = version, false
}

func (e *eventChecker) OnUpdate(old, obj any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key, version := e.record("update", obj)
	if from := podVersion(old.(*v1.Pod)); e.deleted[key] || e.versions[key] != from {
		e.report("update of %s from version %d, but it was at %d, deleted: %v", key, from, e.versions[key],
			e.deleted[key])
	}
	e.versions[key] = version
}

func (e *eventChecker) OnDelete(obj any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		e.tombstones++
		obj = d.Obj
	}
	key, version := e.record("delete", obj)
	if _, known := e.versions[key]; !known || e.deleted[key] {
		e.report("delete of %s at version %d, but it did not exist", key, version)
	}
	e.versions[key], e.deleted[key] = version, true
}

// record records the version of obj and returns its key and version. In messages, how is the kind
// of the notification. The caller must hold mu.
func (e *eventChecker) record(how string, obj any) (string, uint64) {
	pod := obj.(*v1.Pod)
	key, version := pod.Namespace+"/"+pod.Name, podVersion(pod)
	if version < e.versions[key] {
		e.report("%s of %s at version %d, older than version %d", how, key, version, e.versions[key])
	}
	e.seen[version] = true
	e.newest = max(e.newest, version)
	return key, version
}

func (e *eventChecker) report(format string, args ...any) {
	if len(e.violations) < 10 {
		e.violations = append(e.violations, fmt.Sprintf(format, args...))
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
func (e *eventChecker) reached(version uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.newest >= version
}

// missing returns the given versions that the handler has not seen.
func (e *eventChecker) missing(versions []uint64) (missing []uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range versions {
		if !e.seen[v] {
			missing = append(missing, v)
		}
	}
	return missing
}

func (e *eventChecker) allViolations() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.violations
}

func (e *eventChecker) tombstoneCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tombstones
}
