package kubeapi

import (
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport/websocket"
)

// Tokens are bearer tokens and whose they are. Read them with [ReadTokens]. Safe for concurrent use.
type Tokens struct {
	// Immutable after construction. The keys are digests, so that how long a look-up takes tells nothing of the tokens.
	users map[[sha256.Size]byte]User
}

// ReadTokens reads Kubernetes' static token file: CSV with a line for each token, of the token, the user's name, the user's uid and
// optionally the groups, in one quoted field with commas between them. A line that lacks a token or a user, and a token that comes twice,
// are errors of code Invalid that name the line.
func ReadTokens(r io.Reader) (*Tokens, error) {
	records := csv.NewReader(r)
	records.FieldsPerRecord = -1
	records.TrimLeadingSpace = true
	t := &Tokens{users: make(map[[sha256.Size]byte]User)}
	for {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, &listwatch.Error{Code: listwatch.Invalid, Op: "read tokens", Err: err}
		}
		if err := t.add(record); err != nil {
			line, _ := records.FieldPos(0)
			return nil, &listwatch.Error{Code: listwatch.Invalid, Op: "read tokens", Message: fmt.Sprintf("line %d: %v", line, err)}
		}
	}
}

func (t *Tokens) add(record []string) error {
	if len(record) < 3 || len(record) > 4 {
		return fmt.Errorf(`%d fields, want 3 or 4: token,user,uid,"group1,group2"`, len(record))
	}
	token, user := record[0], User{Name: record[1], UID: record[2]}
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
	if _, twice := t.users[digest]; twice {
		return errors.New("its token is that of a line before")
	}
	t.users[digest] = user
	return nil
}

// Authenticate is the [Authenticator] by the tokens: in "Authorization: Bearer", or as a WebSocket subprotocol, for browsers, which
// can't set that header there.
func (t *Tokens) Authenticate(r *http.Request) (User, error) {
	token, ok, err := bearerToken(r)
	if err != nil || !ok {
		return User{}, err
	}
	user, known := t.users[sha256.Sum256([]byte(token))]
	if !known {
		return User{}, &listwatch.Error{Code: listwatch.Unauthorized, Message: "the bearer token is not known here"}
	}
	return user, nil
}

func bearerToken(r *http.Request) (token string, ok bool, err error) {
	// Schemes are case-insensitive (rfc9110#section-11.1).
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if token = strings.TrimSpace(token); strings.EqualFold(scheme, "Bearer") && token != "" {
		return token, true, nil
	}
	return websocket.BearerToken(r)
}
