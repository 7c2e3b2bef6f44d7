package watchserver

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
)

// An Endpoint is the collection, or the part of one, that a request addresses.
type Endpoint struct {
	// Source is the collection.
	Source listwatch.Source
	// Selection restricts the request, in addition to the client's own selectors. Namespace and
	// Name are the scope in the path of the request. A client cannot see any object outside of
	// Selection, so a selector that depends on the user isolates tenants from each other. An object
	// that stops matching is reported as deleted, with its last state that matched. Projection
	// applies to requests without the parameter fields. It hides nothing from a client that
	// requests other members.
	listwatch.Selection
	// Until is the time until which the client may use the endpoint, such as the expiry of its
	// credentials. At that time a watch ends with UntilError as an ERROR event. Later requests are
	// refused with the same error. If zero, the endpoint does not expire.
	//
	// To end a watch early, cancel the context of its request, preferably with a
	// *listwatch.Error as the cause, or call [Server.End].
	Until time.Time
	// UntilError is the error that clients receive after Until. If nil, they receive status 401.
	UntilError error
	// Authorize returns an error if the user may not use the endpoint. The error is sent with
	// status 403 unless it has another code, and with its text if it is a [listwatch.Cause]. ctx
	// has the values of the request's context. If nil, every user may use the endpoint.
	Authorize func(ctx context.Context, user User) error
	// Recheck returns an error if an open watch of the user must end; it is like Authorize.
	// [Server.Recheck] calls it for each open watch. If nil, Authorize is called.
	Recheck func(ctx context.Context, user User) error
	// Watch makes the request a watch even without the parameter watch, as paths such as
	// /api/v1/watch/pods require.
	Watch bool
	// SharedCompression selects the watches whose events are compressed together. The default is
	// [ShareNever]; see [SharedCompression] for the risk.
	SharedCompression SharedCompression
	// Resource names the collection for hooks. If it is zero, it is taken from the description of
	// Source, with the kind as the name.
	Resource Resource

	projections string // the projections of the parts of a union
}

// admit checks that the user of r may use e. It returns e, with Until moved to the expiry of the
// user's credentials if that is earlier.
func (e Endpoint) admit(r *http.Request) (Endpoint, error) {
	user := UserOf(r.Context())
	if expires := user.Expires; !expires.IsZero() && (e.Until.IsZero() || expires.Before(e.Until)) {
		e.Until, e.UntilError = expires, nil
	}
	if !e.Until.IsZero() && !time.Now().Before(e.Until) {
		return e, e.untilError()
	}
	return e, authorizer(e.Authorize).check(r.Context(), user)
}

// recheck returns Recheck, or its default. It may be nil.
func (e *Endpoint) recheck() authorizer {
	if e.Recheck != nil {
		return e.Recheck
	}
	return e.Authorize
}

// untilError returns UntilError, or its default.
func (e *Endpoint) untilError() error { return cmp.Or(e.UntilError, errCredentialsExpired()) }

// resource returns Resource, or its default.
func (e *Endpoint) resource() apihttp.Resource {
	if e.Resource != (Resource{}) {
		return apihttp.Resource(e.Resource)
	}
	return apihttp.DescribeResource(e.Source, "")
}
