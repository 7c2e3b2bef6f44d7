package kubeapi

import (
	"context"
	"crypto/sha256"
	"crypto/x509/pkix"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport/websocket"
)

// A User is who is asking.
type User struct {
	// Name is never empty for somebody who is known.
	Name string
	// UID tells apart users who had one name at different times; it may be empty.
	UID string
	// Groups are those the user belongs to.
	Groups []string
}

// Anonymous returns the user of requests that need not say who they are, as Kubernetes calls them.
func Anonymous() User {
	return User{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}
}

// An Authenticator says who sent a request. A request without the credentials that it looks for is of the zero User, which is no
// error: another one may know more. Credentials that are wrong are an error, answered 401 unless it has another code. It is safe
// for concurrent use.
type Authenticator func(*http.Request) (User, error)

// FirstOf returns an Authenticator that asks all in turn, until one knows the user or finds wrong credentials.
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

// ClientCertificate is the [Authenticator] by TLS client certificates: the common name is the user, organizations are the
// groups (Kubernetes, "Authenticating", X.509 client certificates). Only certificates that the TLS server has verified count:
// tls.Config.ClientAuth must be VerifyClientCertIfGiven or stricter.
func ClientCertificate(r *http.Request) (User, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return User{}, nil
	}
	subject := r.TLS.VerifiedChains[0][0].Subject
	if subject.CommonName == "" {
		return User{}, noCommonName(subject)
	}
	return User{Name: subject.CommonName, Groups: subject.Organization}, nil
}

func (h *Handler) authenticate(r *http.Request) (User, error) {
	if h.Authenticate == nil {
		return Anonymous(), nil
	}
	user, err := h.Authenticate(r)
	switch {
	case err != nil && listwatch.CodeOf(err) == listwatch.Unknown:
		return User{}, &listwatch.Error{Code: listwatch.Unauthorized, Err: err}
	case err == nil && user.Name == "":
		return User{}, &listwatch.Error{Code: listwatch.Unauthorized, Message: "the request bears no credentials"}
	}
	return user, err
}

func noCommonName(subject pkix.Name) error {
	return &listwatch.Error{
		Code:    listwatch.Unauthorized,
		Message: fmt.Sprintf("the client certificate (%s) has no common name, which is the user's", subject),
	}
}

// An Authorizer says whether user may do what a describes: nil if so. An error is answered 403 unless it has another code, with its
// text as the reason. It is asked about objects alone: whoever is known may read discovery and OpenAPI. It is safe for concurrent use.
type Authorizer func(ctx context.Context, user User, a Attributes) error

// Attributes are what an [Authorizer] decides on.
type Attributes struct {
	// Verb is Kubernetes' word: get, list, watch, create, update, patch, delete, deletecollection.
	Verb string
	// Resource is what the verb is about.
	Resource Resource
	// Namespace and Name are those of the path; empty: all, or there are none. The Name of a list or watch is also the one that
	// its field selector wants in metadata.name, as in Kubernetes: so kubectl asks when it waits for one object.
	Namespace, Name string
	// Subresource is the part of the object that is asked for, such as "status"; empty: all of it.
	Subresource string
}

func (h *Handler) authorize(r *http.Request, user User, verb string, c resourceRequest) error {
	if h.Authorize == nil {
		return nil
	}
	if c.name == "" && (verb == "list" || verb == "watch") {
		c.name = selectedName(r)
	}
	err := h.Authorize(r.Context(), user, Attributes{Verb: verb, Resource: c.Resource, Namespace: c.namespace, Name: c.name, Subresource: c.subresource})
	if err == nil || listwatch.CodeOf(err) != listwatch.Unknown {
		return err
	}
	where := "at the cluster scope"
	if c.namespace != "" {
		where = fmt.Sprintf("in the namespace %q", c.namespace)
	}
	what := c.QualifiedName()
	if c.name != "" {
		what = fmt.Sprintf("%s %q", what, c.name)
	}
	resource := c.Plural
	if c.subresource != "" {
		resource += "/" + c.subresource
	}
	return &listwatch.Error{
		Code: listwatch.Forbidden,
		Message: fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q in API group %q %s: %v",
			what, user.Name, verb, resource, c.Group, where, err),
		Details: &listwatch.Details{Name: c.name, Group: c.Group, Kind: c.Plural},
	}
}

// selectedName returns the only name that the objects of a list can have; empty where they can have more. A selector that can't be read
// names none: it is refused later.
func selectedName(r *http.Request) string {
	fields, err := listwatch.ParseFieldSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := fields.Equality(listwatch.FieldName)
	return name
}

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
