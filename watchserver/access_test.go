package watchserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// loginFor returns an Authenticator that takes the user's name from the parameter user. The
// credentials expire after d, or never if d is zero.
func loginFor(d time.Duration) watchserver.Authenticator {
	return func(r *http.Request) (watchserver.User, error) { return login(r, d) }
}

func login(r *http.Request, d time.Duration) (watchserver.User, error) {
	u := watchserver.User{Name: r.FormValue("user"), Groups: []string{"readers"}}
	switch {
	case u.Name == "eve":
		return u, errors.New("wrong password")
	case u.Name == "down":
		return u, &listwatch.Error{Code: listwatch.Unavailable, Message: "no connection to the directory"}
	case d != 0:
		u.Expires = time.Now().Add(d)
	}
	return u, nil
}

func TestAWatchEndsWhenItsCredentialsExpire(t *testing.T) {
	for _, detach := range []bool{false, true} {
		configure := func(s *watchserver.Server) { s.Access.Authenticator, s.Detach = loginFor(time.Hour), detach }
		keep := func(ctx context.Context) context.Context { return ctx }
		onEachPath(t, keep, configure, func(f *fixture, c transport.Client) {
			start := time.Now()
			w := f.watch(c, "user=ada&timeoutSeconds=7200")
			ended := make(chan *listwatch.Error)
			go func() { ended <- w.wantError(listwatch.Unauthorized) }()
			err := <-ended
			if took := time.Since(start); took != time.Hour || err.Status != http.StatusUnauthorized {
				f.Errorf("got status %d after %v, want 401 after 1h", err.Status, took)
			}
		})
	}
}

func TestAWatchMayEndBeforeItsCredentialsExpire(t *testing.T) {
	configure := func(s *watchserver.Server) { s.Access.Authenticator = loginFor(time.Hour) }
	onEachTransport(t, configure, func(f *fixture, c transport.Client) {
		f.watch(c, "user=ada&timeoutSeconds=5").wantEnd()
	})
}

func TestUnknownUsersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tests := []struct {
			user   string
			login  time.Duration
			status int
		}{
			{"", 0, http.StatusUnauthorized},
			{"eve", 0, http.StatusUnauthorized},
			{"down", 0, http.StatusServiceUnavailable},
			{"ada", -time.Second, http.StatusUnauthorized},
			{"ada", 0, http.StatusOK},
		}
		for _, tt := range tests {
			seen := new(userSource)
			s := &watchserver.Server{Source: seen, Access: watchserver.Access{Authenticator: loginFor(tt.login)}}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest("GET", "/?user="+tt.user, nil))
			if w.Code != tt.status {
				t.Errorf("user %q: got status %d, want %d", tt.user, w.Code, tt.status)
			}
			if called := seen.user.Name != ""; called != (tt.status == http.StatusOK) {
				t.Errorf("user %q: the source saw user %+v", tt.user, seen.user)
			}
		}
	})
}

// A userSource is a source that records the user of a list.
type userSource struct {
	blockedSource
	user watchserver.User
}

func (s *userSource) List(ctx context.Context, _ listwatch.Query) (listwatch.Page, error) {
	s.user = watchserver.UserOf(ctx)
	return listwatch.Page{Version: 1}, nil
}

func TestFirstOfStopsAtFirstResult(t *testing.T) {
	unknownUser := func(*http.Request) (watchserver.User, error) { return watchserver.User{}, nil }
	wrong := func(*http.Request) (watchserver.User, error) { return watchserver.User{}, errors.New("wrong") }
	ada := func(*http.Request) (watchserver.User, error) { return watchserver.User{Name: "ada"}, nil }
	if u, err := watchserver.FirstOf(unknownUser, ada, wrong)(nil); err != nil || u.Name != "ada" {
		t.Errorf("got %v, error %v; want ada", u, err)
	}
	if _, err := watchserver.FirstOf(unknownUser, wrong, ada)(nil); err == nil {
		t.Error("wrong credentials were accepted")
	}
}
