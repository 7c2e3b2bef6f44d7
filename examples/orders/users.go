package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchserver"
)

// lifetime is the time for which a token is valid.
const lifetime = 10 * time.Second

// users holds the tenant of each user. It is a flag.Value.
type users map[string]string

// Set adds a user.
func (u users) Set(text string) error {
	name, tenant, _ := strings.Cut(text, "=")
	if name == "" || tenant == "" {
		return errors.New("must be a user and a tenant, such as eve=acme")
	}
	u[name] = tenant
	return nil
}

// String returns the names of the users.
func (u users) String() string { return strings.Join(slices.Sorted(maps.Keys(u)), ", ") }

// An issuer issues tokens and checks them. A token consists of a signature, the time at which it
// expires, and a user, so all servers with the same key accept it.
type issuer struct {
	key   []byte
	users users
}

// login sends a token to the user in the body. A real program asks for a password, or uses an
// identity provider; see docs/users.md.
func (i *issuer) login(w http.ResponseWriter, r *http.Request) {
	name, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 100))
	if err != nil || i.users[string(name)] == "" {
		http.Error(w, "the users are "+i.users.String(), http.StatusForbidden)
		return
	}
	claims := fmt.Sprintf("%d.%s", time.Now().Add(lifetime).Unix(), name)
	_, _ = io.WriteString(w, i.sign(claims)+"."+claims) // fails if the browser has disconnected
}

func (i *issuer) sign(claims string) string {
	hash := hmac.New(sha256.New, i.key)
	hash.Write([]byte(claims))
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil))
}

// authenticate is a watchserver.Authenticator. The group of the user is the tenant.
func (i *issuer) authenticate(r *http.Request) (watchserver.User, error) {
	token, err := watchserver.BearerToken(r)
	if err != nil || token == "" {
		return watchserver.User{}, err
	}
	signature, claims, _ := strings.Cut(token, ".")
	expires, name, _ := strings.Cut(claims, ".")
	seconds, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || !hmac.Equal([]byte(signature), []byte(i.sign(claims))) || i.users[name] == "" {
		return watchserver.User{}, listwatch.Cause{Message: "the token is unknown"}
	}
	return watchserver.User{Name: name, Groups: []string{i.users[name]}, Expires: time.Unix(seconds, 0)}, nil
}
