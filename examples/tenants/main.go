// Command tenants serves the feature flags of several tenants. Each user sees and writes only the
// flags of one tenant, invalid flags are refused, and watches end when credentials expire.
package main

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/typed"
	"github.com/listwatch/listwatch/watchserver"
)

// A Flag turns a feature on for a part of the users.
type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Percent            int    `json:"percent"`
	Salt               string `json:"salt"`
}

func main() {
	s := sessions{}
	for _, user := range []watchserver.User{
		{Name: "ada", Groups: []string{"tenant:acme", "writers"}},
		{Name: "eve", Groups: []string{"tenant:acme"}},
		{Name: "bob", Groups: []string{"tenant:globex", "writers"}},
	} {
		user.Expires = time.Now().Add(time.Hour)
		token := rand.Text()
		s[token] = user
		fmt.Println(user.Name, token)
	}
	handler, err := newHandler(s.authenticate)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: handler}
	h2.Configure(server, h2.Config{})
	log.Fatal(server.ListenAndServe())
}

// sessions are the users who have logged in, by their tokens.
type sessions map[string]watchserver.User

// authenticate is a watchserver.Authenticator.
func (s sessions) authenticate(r *http.Request) (watchserver.User, error) {
	token, err := watchserver.BearerToken(r)
	if err != nil || token == "" {
		return watchserver.User{}, err
	}
	user, ok := s[token]
	if !ok {
		return user, listwatch.Cause{Message: "the token is unknown"}
	}
	return user, nil
}

// newHandler returns the handler of the flags, at /flags.
func newHandler(authenticator watchserver.Authenticator) (http.Handler, error) {
	spec := store.SpecOf[Flag]()
	spec.Admit = typed.Admit(admit)
	flags, err := memory.Open(memory.Options{}).Collection(spec)
	if err != nil {
		return nil, err
	}
	return &crudserver.Handler{
		Path:       "/flags",
		Collection: flags,
		Server:     &watchserver.Server{Access: watchserver.Access{Authenticator: authenticator}},
		Scope:      scope,
		Authorize:  authorize,
	}, nil
}
