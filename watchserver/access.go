package watchserver

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/transport/websocket"
)

// Access determines who may use a [Server].
type Access struct {
	// Authenticator identifies the user of each request. The methods of a Source can pass their
	// context to [UserOf] to get the user. If nil, every request is served, unless a handler that
	// wraps the Server refuses it.
	Authenticator Authenticator
	// Origins are the origins, in addition to the server's own, whose pages may write and may open
	// a WebSocket. They are patterns such as "https://*.example.com" or "http://127.0.0.1:*". For
	// reads over the other transports, see [CORS].
	Origins []string
	// TrustedProxies are the addresses of proxies whose header X-Forwarded-For names the client.
	// If empty, the client has the address of the connection.
	TrustedProxies []netip.Prefix
}

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
	// Recheck identifies the user again by the credentials of the request. Like an Authenticator,
	// it returns an error if they are no longer valid. [Server.Recheck] calls it for each open
	// watch, for several watches at the same time. The function lives as long as the watch, so it
	// should refer only to the credentials and not to the whole request. If nil, the user stays the
	// same.
	Recheck func() (User, error)
}

// An Authenticator identifies the user of a request. It returns the zero User if the request has no
// credentials of the kind that the Authenticator checks. If the credentials are wrong, it returns
// an error, which is sent with status 401 unless the error has another code. The client receives
// the reason only if the error is a [listwatch.Cause] or a *listwatch.Error with a Message. An
// Authenticator must be safe for concurrent use. The request waits for it and counts against the
// limits meanwhile, so an Authenticator that calls another server must use a timeout.
type Authenticator func(*http.Request) (User, error)

// FirstOf returns an Authenticator that tries all in order, until one of them identifies the user
// or returns an error.
func FirstOf(all ...Authenticator) Authenticator {
	return func(r *http.Request) (User, error) {
		for _, a := range all {
			if u, err := a(r); err != nil || u.Name != "" {
				return u, err
			}
		}
		return User{}, nil
	}
}

// BearerToken returns the token in the header "Authorization: Bearer TOKEN" of r or, because
// browsers cannot set that header for a WebSocket, in a subprotocol; see BearerToken of package
// transport/websocket. It returns "" if there is no token. If the token in a subprotocol cannot be
// decoded, the error has code Unauthorized.
func BearerToken(r *http.Request) (string, error) {
	// Schemes are case-insensitive (rfc9110#section-11.1).
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if token = strings.TrimSpace(token); strings.EqualFold(scheme, "Bearer") && token != "" {
		return token, nil
	}
	token, _, err := websocket.BearerToken(r)
	return token, err
}

// authenticate returns the context of r with its user, or the error to send to the client.
func (a *Access) authenticate(r *http.Request) (context.Context, error) {
	if a.Authenticator == nil {
		return r.Context(), nil
	}
	user, err := accept(a.Authenticator(r))
	if err != nil {
		return nil, err
	}
	return WithUser(r.Context(), user), nil
}

// accept checks user and err, the results of an Authenticator. It returns user, or the error to
// send to the client.
func accept(user User, err error) (User, error) {
	switch {
	case err != nil:
		return User{}, apihttp.Refusal(listwatch.Unauthorized, err)
	case user.Name == "":
		return User{}, &listwatch.Error{Code: listwatch.Unauthorized, Message: "the request has no credentials"}
	case !user.Expires.IsZero() && !time.Now().Before(user.Expires):
		return User{}, errCredentialsExpired()
	}
	return user, nil
}

// current identifies u again. It returns the user, or the error to send to the client.
func (u User) current() (User, error) {
	if u.Recheck == nil {
		return u, nil
	}
	return accept(u.Recheck())
}

type userKey struct{}

// WithUser returns a context for the requests of u. A handler that identifies users itself calls
// WithUser before [Server.Serve].
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserOf returns the user that [Access.Authenticator] or [WithUser] has set in ctx, the context of
// a request. It returns the zero User if there is no user.
func UserOf(ctx context.Context) User {
	u, _ := ctx.Value(userKey{}).(User)
	return u
}

// sender returns the names of the user in ctx and of the client of r. The client is the user or, if
// the user is unknown or unauthenticated, an IP address.
func (a *Access) sender(ctx context.Context, r *http.Request) (user, client string) {
	u := UserOf(ctx)
	if u.Name != "" && !slices.Contains(u.Groups, "system:unauthenticated") {
		return u.Name, u.Name
	}
	return u.Name, clientAddress(r, a.TrustedProxies)
}

// clientAddress returns the address of the connection of r. If that address belongs to a trusted
// proxy, clientAddress returns the last address in X-Forwarded-For that is not in trusted, because
// each proxy appends the address of its client.
func clientAddress(r *http.Request, trusted []netip.Prefix) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	if len(trusted) == 0 {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for len(hops) > 0 {
		addr, err := netip.ParseAddr(host)
		if err != nil || !slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) }) {
			break
		}
		last, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1]))
		if err != nil {
			break
		}
		host, hops = last.String(), hops[:len(hops)-1]
	}
	return host
}

// An authorizer is the type of [Endpoint.Authorize] and [Endpoint.Recheck].
type authorizer func(ctx context.Context, user User) error

// check returns an error to send to the client if user is not allowed.
func (a authorizer) check(ctx context.Context, user User) error {
	if a == nil {
		return nil
	}
	return apihttp.Refusal(listwatch.Forbidden, a(ctx, user))
}

func errCredentialsExpired() error {
	return &listwatch.Error{Code: listwatch.Unauthorized, Message: "the credentials have expired; use new ones"}
}

// CORS wraps the handler next so that pages of other origins can read its responses, as the
// CORS protocol of the Fetch standard specifies. origins are patterns as in
// [transport.OriginAllowed]. Responses to other origins get no Access-Control headers, so
// browsers do not let pages read them.
//
// CORS answers preflight requests itself, with status 204, and passes all other requests on to
// next unchanged.
func CORS(next http.Handler, origins []string) http.Handler { return apihttp.CORS(next, origins) }

// WriteError responds to r with err as a Kubernetes Status, with the corresponding HTTP
// status and the headers that HTTP requires for that status: Allow, Retry-After or
// WWW-Authenticate. It first reads the rest of the request's body for up to a second, so that an
// HTTP/1.1 connection can serve further requests.
func WriteError(w http.ResponseWriter, r *http.Request, err error) { apihttp.WriteError(w, r, err) }
