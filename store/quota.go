package store

import (
	"fmt"
	"sync"

	"github.com/listwatch/listwatch"
)

// A QuotaError is the error of a write that would exceed a quota of [CollectionSpec]. It has the
// code Forbidden, and so status 403, like the error of a ResourceQuota in Kubernetes.
type QuotaError struct {
	// Quota is "objects" or "bytes".
	Quota string
	// Err is the error that the client receives.
	Err *listwatch.Error
}

// Error implements error.
func (e *QuotaError) Error() string { return e.Err.Error() }

// Unwrap returns e.Err.
func (e *QuotaError) Unwrap() error { return e.Err }

// A quota counts the objects and bytes that the writes in progress add to a collection.
type quota struct {
	mu sync.Mutex
	// Guarded by mu.
	objects, bytes int64
}

// A sized is a backend that knows the sizes of its collection.
type sized interface{ Stats() listwatch.Stats }

// reserve checks that change, a change of b, does not exceed the quotas of s. It also counts the
// objects and bytes that change adds, until release is called. A write that makes the collection no
// larger is allowed even if a quota is exceeded.
func (q *quota) reserve(s CollectionSpec, b Backend, change Change) (release func(), err error) {
	if s.MaxObjects <= 0 && s.MaxBytes <= 0 || change.New == nil {
		return func() {}, nil
	}
	stats, ok := listwatch.As[sized](b)
	if !ok {
		return nil, &listwatch.Error{
			Code:    listwatch.Unsupported,
			Message: fmt.Sprintf("%s has a quota, but its backend %T has no method Stats", s.QualifiedName(), b),
		}
	}
	objects, bytes := int64(1), int64(len(change.New.Before)+len(change.New.After))
	if change.Old != nil {
		objects, bytes = 0, bytes-int64(len(change.Old.Data))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := stats.Stats()
	err = s.checkQuota("objects", objects, int64(now.Objects)+q.objects, int64(s.MaxObjects), change.Key)
	if err == nil {
		err = s.checkQuota("bytes", bytes, now.ObjectBytes+q.bytes, s.MaxBytes, change.Key)
	}
	if err != nil {
		return nil, err
	}
	bytes = max(bytes, 0)
	q.objects, q.bytes = q.objects+objects, q.bytes+bytes
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.objects, q.bytes = q.objects-objects, q.bytes-bytes
	}, nil
}

// checkQuota returns an error if the sum of used and more exceeds limit. used is the amount in
// the collection, and more is the amount that the write would add.
func (s CollectionSpec) checkQuota(name string, more, used, limit int64, key listwatch.Key) error {
	if limit <= 0 || more <= 0 || used+more <= limit {
		return nil
	}
	return &QuotaError{name, &listwatch.Error{
		Code: listwatch.Forbidden,
		Message: fmt.Sprintf(
			"%s %q is forbidden: exceeded quota: %s of the collection, requested: %d, used: %d, limited: %d",
			s.QualifiedName(), key.Name, name, more, used, limit),
		Details: &listwatch.Details{Name: key.Name, Group: s.Group(), Kind: s.Plural},
	}}
}
