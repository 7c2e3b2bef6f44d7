package watchserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// A User is the sender of a request.
type User struct {
	// Name is the user's name. It is empty only if the user is unknown.
	Name string
	// UID distinguishes users who had the same name at different times. It may be empty.
	UID string
	// Groups are the groups that the user belongs to.
	Groups []string
	// Expires is the time at which the user's credentials expire, such as the member exp of a JSON
	// Web Token (rfc7519#section-4.1.4). A watch ends at that time with an ERROR event of status
	// 401, so that the client sends fresh credentials. If zero, they do not expire.
	Expires time.Time
	// Recheck identifies the user again by the credentials of the request, and returns an error, as
	// an Authenticator does, if they are no longer valid. [Server.Recheck] calls it for each open
	// watch. The function lives as long as the watch, so it should refer only to the credentials
	// and not to the whole request. If nil, the user stays the same.
	Recheck func() (User, error)
}

// An Authenticator identifies the user of a request. It must be safe for concurrent use.
type Authenticator interface {
	// Authenticate returns the user of r, or the zero User if r has no credentials of the kind that
	// the Authenticator checks. If the credentials are wrong, it returns an error, which is sent
	// with status 401 unless the error has another code.
	Authenticate(r *http.Request) (User, error)
}

// Authenticate returns the user whom the Authenticator a identifies, or an error to send to the
// client. The error has the code Unauthorized if r has no credentials or its credentials have
// expired.
func Authenticate(r *http.Request, a Authenticator) (User, error) {
	return accept(a.Authenticate(r))
}

// accept checks user and err, the results of an Authenticator. It returns user, or the error to
// send to the client.
func accept(user User, err error) (User, error) {
	switch {
	case err != nil && listwatch.CodeOf(err) == listwatch.Unknown:
		return User{}, &listwatch.Error{Code: listwatch.Unauthorized, Err: err}
	case err != nil:
		return User{}, err
	case user.Name == "":
		return User{}, &listwatch.Error{Code: listwatch.Unauthorized, Message: "the request has no credentials"}
	case !user.Expires.IsZero() && !time.Now().Before(user.Expires):
		return User{}, errCredentialsExpired()
	}
	return user, nil
}

// authenticate returns r with the user that the Authenticator of s identifies, if s has one. If
// that fails, it returns r unchanged, with the error.
func (s *Server) authenticate(r *http.Request) (*http.Request, error) {
	if s.Authenticator == nil {
		return r, nil
	}
	user, err := Authenticate(r, s.Authenticator)
	if err != nil {
		return r, err
	}
	return r.WithContext(WithUser(r.Context(), user)), nil
}

// Admit applies the settings of s to a request that s does not serve itself, such as a write that
// another handler serves. It returns an error for [Server.Refuse] if the Authenticator refuses the
// request, if r is a write from a web page of another origin (see [CheckOrigin]), or if its URL or
// headers are refused (see [Server.CheckRequest]). Otherwise it returns r with the user. If
// NoCompression is set, the returned request accepts no compression.
func (s *Server) Admit(r *http.Request) (*http.Request, error) {
	if err := s.CheckRequest(r); err != nil {
		return nil, err
	}
	if err := CheckOrigin(r, s.AllowOrigins); err != nil {
		return nil, err
	}
	if s.NoCompression {
		r = transport.WithoutCompression(r)
	}
	return s.authenticate(r)
}

// An authorizer is the type of [Endpoint.Authorize].
type authorizer func(ctx context.Context, user User) error

// check returns an error to send to the client if user is not allowed.
func (a authorizer) check(ctx context.Context, user User) error {
	if a == nil {
		return nil
	}
	err := a(ctx, user)
	if err != nil && listwatch.CodeOf(err) == listwatch.Unknown {
		return &listwatch.Error{Code: listwatch.Forbidden, Err: err}
	}
	return err
}

func errCredentialsExpired() error {
	return &listwatch.Error{Code: listwatch.Unauthorized, Message: "the credentials have expired; use new ones"}
}

type userKey struct{}

// WithUser returns a context for the requests of u. A handler that identifies users itself calls
// WithUser before [Server.Serve].
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserOf returns the user that [Server.Authenticator] or [WithUser] has set in ctx, the context of
// a request. It returns the zero User if there is no user.
func UserOf(ctx context.Context) User {
	u, _ := ctx.Value(userKey{}).(User)
	return u
}

// CORS wraps the handler next so that pages of other origins can read its responses, as the
// CORS protocol of the Fetch standard specifies. origins are patterns as in
// [transport.OriginAllowed]. Responses to other origins get no Access-Control headers, so
// browsers do not let pages read them.
//
// CORS answers preflight requests itself, with status 204, and passes all other requests on to
// next unchanged.
func CORS(next http.Handler, origins []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		// Vary is also needed for a request without an Origin: otherwise a cache could return this
		// response, which has no CORS headers, to a page (Fetch, "CORS protocol and HTTP caches").
		h.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if origin == "" {
			next.ServeHTTP(w, r)
			return
		}
		allowed := transport.OriginAllowed(r, origins)
		if allowed {
			// Name the origin, because "*" would not allow requests with credentials.
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Credentials", "true")
			h.Set("Access-Control-Expose-Headers", transport.EpochHeader+", ETag, Location, Retry-After, Warning")
		}
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			next.ServeHTTP(w, r)
			return
		}
		if allowed {
			h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, If-Match, Last-Event-ID, X-Requested-With")
			h.Set("Access-Control-Max-Age", "600")
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// CheckOrigin returns an error of code Forbidden if r is a write from a web page of another origin,
// unless one of the patterns in origins matches that origin (see [transport.OriginAllowed]). CORS
// alone does not prevent such writes, because browsers send some of them without a preflight
// request. If a write has no Origin header, the header Sec-Fetch-Site shows whether it comes from
// another page (Fetch Metadata Request Headers, section 2.3).
func CheckOrigin(r *http.Request, origins []string) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil // the WebSocket transport checks the origin itself
	}
	origin := strings.Join(r.Header.Values("Origin"), ", ")
	if site := r.Header.Get("Sec-Fetch-Site"); origin == "" && (site == "cross-site" || site == "same-site") {
		return &listwatch.Error{Code: listwatch.Forbidden, Message: "web pages of other origins may not write to this server without an Origin (Sec-Fetch-Site: " + site + ")"}
	}
	if transport.OriginAllowed(r, origins) {
		return nil
	}
	return &listwatch.Error{Code: listwatch.Forbidden, Message: fmt.Sprintf("web pages of origin %q may not write to this server", origin)}
}
