// Package tokenfile identifies users by the bearer tokens of a file in Kubernetes' format
// (Kubernetes, "Authenticating", Static token file).
package tokenfile

import (
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchserver"
)

// Tokens maps bearer tokens to users. [Read] creates it. It is safe for concurrent
// use.
type Tokens struct {
	users atomic.Pointer[tokenUsers]
}

// tokenUsers holds the users by the digests of their tokens, so that the time of a lookup reveals
// nothing about the tokens.
type tokenUsers map[[sha256.Size]byte]watchserver.User

// Read reads Kubernetes' static token file: CSV with one line per token that contains
// the token, the user's name, the user's UID and optionally the groups, in one quoted field
// and separated by commas. A line without a token or user, and a duplicate token, are
// errors of code Invalid that name the line.
func Read(r io.Reader) (*Tokens, error) {
	t := new(Tokens)
	if err := t.Replace(r); err != nil {
		return nil, err
	}
	return t, nil
}

// Replace reads a token file as [Read] does, and replaces all tokens. If it returns an error, the
// tokens stay the same. After it, call [watchserver.Server.Recheck] to end the watches of users
// whose tokens are no longer in the file.
func (t *Tokens) Replace(r io.Reader) error {
	records := csv.NewReader(r)
	records.FieldsPerRecord = -1
	records.TrimLeadingSpace = true
	users := make(tokenUsers)
	for {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			t.users.Store(&users)
			return nil
		}
		if err != nil {
			return &listwatch.Error{Code: listwatch.Invalid, Op: "read tokens", Err: err}
		}
		if err := users.add(record); err != nil {
			line, _ := records.FieldPos(0)
			return &listwatch.Error{
				Code: listwatch.Invalid, Op: "read tokens", Message: fmt.Sprintf("line %d: %v", line, err),
			}
		}
	}
}

func (t tokenUsers) add(record []string) error {
	if len(record) < 3 || len(record) > 4 {
		return fmt.Errorf(`%d fields, want 3 or 4: token,user,uid,"group1,group2"`, len(record))
	}
	token, user := record[0], watchserver.User{Name: record[1], UID: record[2]}
	if token == "" || user.Name == "" {
		return errors.New("the token and the user's name must not be empty")
	}
	if len(record) == 4 {
		for g := range strings.SplitSeq(record[3], ",") {
			if g = strings.TrimSpace(g); g != "" {
				user.Groups = append(user.Groups, g)
			}
		}
	}
	digest := sha256.Sum256([]byte(token))
	if _, twice := t[digest]; twice {
		return errors.New("the token is also on an earlier line")
	}
	t[digest] = user
	return nil
}

// Authenticate is a [watchserver.Authenticator]. It takes the token from "Authorization: Bearer" or
// from a WebSocket subprotocol, because browsers cannot set that header for WebSocket.
func (t *Tokens) Authenticate(r *http.Request) (watchserver.User, error) {
	token, err := watchserver.BearerToken(r)
	if err != nil || token == "" {
		return watchserver.User{}, err
	}
	digest := sha256.Sum256([]byte(token))
	user, err := t.find(digest)
	user.Recheck = func() (watchserver.User, error) { return t.find(digest) }
	return user, err
}

func (t *Tokens) find(digest [sha256.Size]byte) (watchserver.User, error) {
	user, known := (*t.users.Load())[digest]
	if !known {
		return watchserver.User{}, &listwatch.Error{
			Code: listwatch.Unauthorized, Message: "the bearer token is unknown",
		}
	}
	return user, nil
}
