package clusterrelay

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// reviewLifetime is the time for which the API server's decision about a user or a right is used
// again.
const reviewLifetime = 10 * time.Second

// A reviewer asks the API server who sends a request, and whether they may send it.
type reviewer struct {
	*caller
	users  memo[[sha256.Size]byte, user] // by token
	rights memo[access, bool]
}

// An access is a user with a request.
type access struct {
	user                           string // as JSON
	verb, group, version, resource string
	namespace, name                string
	labels, fields                 string // selectors
}

// userOf returns the user to whom token belongs. If the API server does not accept the token, the
// user is unknown.
func (r *reviewer) userOf(ctx context.Context, token string) (user, error) {
	return r.users.get(ctx, sha256.Sum256([]byte(token)), func(ctx context.Context) (u user, err error) {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		review.APIVersion, review.Kind = authenticationv1.SchemeGroupVersion.String(), "TokenReview"
		err = r.call(ctx, http.MethodPost, "apis/"+review.APIVersion+"/tokenreviews", jsonType, review, review)
		if err != nil || !review.Status.Authenticated || review.Status.User.Username == "" {
			return u, err
		}
		return newUser(review.Status.User)
	})
}

// allows reports whether the user may make the request that a describes. The selectors count,
// because some authorizers allow nodes to read only what concerns them.
func (r *reviewer) allows(ctx context.Context, u user, a access) (bool, error) {
	a.user = u.key
	return r.rights.get(ctx, a, func(ctx context.Context) (bool, error) {
		attributes := &authorizationv1.ResourceAttributes{
			Verb: a.verb, Group: a.group, Version: a.version, Resource: a.resource,
			Namespace: a.namespace, Name: a.name,
		}
		if a.labels != "" {
			attributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: a.labels}
		}
		if a.fields != "" {
			attributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: a.fields}
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: u.Username, UID: u.UID, Groups: u.Groups, ResourceAttributes: attributes,
			Extra: make(map[string]authorizationv1.ExtraValue),
		}}
		for key, values := range u.Extra {
			review.Spec.Extra[key] = authorizationv1.ExtraValue(values)
		}
		review.APIVersion, review.Kind = authorizationv1.SchemeGroupVersion.String(), "SubjectAccessReview"
		err := r.call(ctx, http.MethodPost, "apis/"+review.APIVersion+"/subjectaccessreviews", jsonType, review, review)
		return review.Status.Allowed && !review.Status.Denied, err
	})
}

// identify returns the user with the credentials of s. If they are not accepted, the user is
// unknown.
func (r *reviewer) identify(ctx context.Context, s sender) (user, error) {
	switch {
	case s.certified == nil:
		return r.userOf(ctx, s.token)
	case s.certified.recheck() != nil:
		return user{}, nil
	}
	return s.certified.user, nil
}

// check identifies the user of c and reviews the request. If the user may not make the request,
// denial is Unauthorized or Forbidden. Otherwise check sets the user of c. err is the error of a
// review.
func (r *reviewer) check(ctx context.Context, c *call) (denial, err error) {
	u, err := r.identify(ctx, c.sender)
	if err != nil {
		return nil, err
	}
	if u.key == "" {
		return &listwatch.Error{
			Code: listwatch.Unauthorized, Message: "the token or certificate is no longer accepted",
		}, nil
	}
	allowed, err := r.allows(ctx, u, access{
		verb: c.verb, group: c.Group, version: c.Version, resource: c.Plural, namespace: c.Namespace,
		name: c.nameFor(), labels: c.labels, fields: c.fields,
	})
	if err != nil {
		return nil, err
	}
	if !allowed {
		return &listwatch.Error{
			Code: listwatch.Forbidden, Message: "the API server does not allow the user this " + c.verb,
		}, nil
	}
	c.user = u
	return nil, nil
}

// reviewFailed is the error for a client whose rights the relay cannot determine. err is the error
// of a review.
func reviewFailed(err error) error {
	if listwatch.CodeOf(err) == listwatch.Unavailable {
		return err
	}
	return &listwatch.Error{
		Code: listwatch.Unavailable, Message: "the relay cannot review the rights of its clients", Err: err,
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}

// A memo remembers the results of a function for reviewLifetime. Concurrent calls with the same key
// share one result. Errors are shared but not remembered. The zero memo is ready to use.
type memo[K comparable, V any] struct {
	mu sync.Mutex
	// Guarded by mu.
	results map[K]*memoized[V]
	sweepAt int // the number of results at which the expired ones are removed
}

type memoized[V any] struct {
	done chan struct{}
	// Immutable after done is closed.
	value V
	err   error
	until time.Time
}

// isOver reports whether the result must not be used for a new call.
func (m *memoized[V]) isOver() bool {
	select {
	case <-m.done:
		return !time.Now().Before(m.until)
	default:
		return false
	}
}

// get returns the result of load for key, or the error of ctx. load runs with the values of ctx,
// but it does not end with ctx, because other calls may wait for its result.
func (m *memo[K, V]) get(ctx context.Context, key K, load func(context.Context) (V, error)) (zero V, err error) {
	m.mu.Lock()
	r := m.results[key]
	if r == nil || r.isOver() {
		m.sweep()
		r = &memoized[V]{done: make(chan struct{})}
		m.results[key] = r
		go func() { // ends with load, which has a timeout
			defer close(r.done)
			if r.value, r.err = load(context.WithoutCancel(ctx)); r.err == nil {
				r.until = time.Now().Add(reviewLifetime)
			}
		}()
	}
	m.mu.Unlock()
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}

// minSweep is the number of results below which none is removed.
const minSweep = 1024

// sweep removes the expired results when their number has doubled since the last time.
func (m *memo[K, V]) sweep() {
	if m.results == nil {
		m.results, m.sweepAt = make(map[K]*memoized[V]), minSweep
	}
	if len(m.results) < m.sweepAt {
		return
	}
	for key, r := range m.results {
		if r.isOver() {
			delete(m.results, key)
		}
	}
	m.sweepAt = max(2*len(m.results), minSweep)
}
