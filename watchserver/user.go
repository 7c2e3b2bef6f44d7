package watchserver

import (
	"context"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
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
}

// An Authenticator identifies the user of a request. It must be safe for concurrent use.
type Authenticator interface {
	// Authenticate returns the user of r, or the zero User if r has no credentials of the kind
	// that it checks. An error, for wrong credentials, is sent with status 401 unless it has
	// another code.
	Authenticate(r *http.Request) (User, error)
}

// Authenticate returns the user that a identifies, or an error to send to the client, of code
// Unauthorized if r has no credentials or they have expired.
func Authenticate(r *http.Request, a Authenticator) (User, error) {
	user, err := a.Authenticate(r)
	switch {
	case err != nil && listwatch.CodeOf(err) == listwatch.Unknown:
		return User{}, &listwatch.Error{Code: listwatch.Unauthorized, Err: err}
	case err != nil:
		return User{}, err
	case user.Name == "":
		return User{}, &listwatch.Error{Code: listwatch.Unauthorized, Message: "the request has no credentials"}
	case isDue(user.Expires, time.Now()):
		return User{}, errCredentialsExpired()
	}
	return user, nil
}

func errCredentialsExpired() error {
	return &listwatch.Error{Code: listwatch.Unauthorized, Message: "the credentials have expired; use new ones"}
}

type userKey struct{}

// WithUser returns a context for the requests of u. It is for handlers that identify users
// themselves, before they call [Server.Serve].
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserOf returns the user of the request whose context is ctx, which [Server.Authenticator] or
// [WithUser] has set. It returns the zero User if there is none.
func UserOf(ctx context.Context) User {
	u, _ := ctx.Value(userKey{}).(User)
	return u
}
