package kubetest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/collector"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rbac"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	"github.com/listwatch/listwatch/watchserver"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// admin returns the user of requests without credentials.
func admin() kubeapi.User {
	return kubeapi.User{Name: "admin", Groups: []string{rbac.Masters, rbac.Authenticated}}
}

// issuer is the issuer of the tokens of service accounts, and the audience that the API accepts.
const issuer = "https://kubernetes.default.svc"

// A token identifies a user.
type token struct {
	user kubeapi.User
	// account is the service account that must exist, with the UID of user, for the token to be
	// valid. It is zero for a token of ConfigFor.
	account listwatch.Key
	// audiences are the programs that accept the token. If nil, the API accepts it.
	audiences []string
}

// An authority identifies the users, and decides what they may do.
type authority struct {
	api *api // immutable
	// started is true once the cluster roles exist that have all their rules from the start. It is
	// set before the Env serves.
	started bool

	mu sync.Mutex
	// Guarded by mu.
	tokens map[string]token
	// policy has the present roles and bindings. It is nil if they have changed since it was made.
	policy *rbac.Policy
}

// newUser returns the user with the given name and groups.
func newUser(name string, groups []string) kubeapi.User {
	return kubeapi.User{Name: name, Groups: rbac.GroupsOf(name, groups)}
}

// add returns the text of a new token. It has the form of a JSON Web Token, because clients read
// the time at which it expires.
func (a *authority) add(t token) string {
	claims := map[string]any{"iss": issuer, "sub": t.user.Name, "iat": time.Now().Unix()}
	if len(t.audiences) > 0 {
		claims["aud"] = t.audiences
	}
	if !t.user.Expires.IsZero() {
		claims["exp"] = t.user.Expires.Unix()
	}
	if t.account.Name != "" {
		claims["kubernetes.io"] = map[string]any{
			"namespace":      t.account.Namespace,
			"serviceaccount": map[string]string{"name": t.account.Name, "uid": t.user.UID},
		}
	}
	payload, _ := json.Marshal(claims) // strings and numbers can be encoded
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(payload) + "." + rand.Text()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens[text] = t
	return text
}

// issue returns a TokenRequest for the service account at key with a token.
func (a *authority) issue(
	ctx context.Context, accounts collector.Resource, key listwatch.Key, body []byte,
) (any, error) {
	o, err := accounts.Collection.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	m, err := rules.Metadata(o.Data)
	if err != nil {
		return nil, err
	}
	var request authenticationv1.TokenRequest
	if err := decode(body, "TokenRequest", &request); err != nil {
		return nil, err
	}
	if request.Spec.ExpirationSeconds == nil {
		hour := int64(time.Hour / time.Second)
		request.Spec.ExpirationSeconds = &hour
	}
	if len(request.Spec.Audiences) == 0 {
		request.Spec.Audiences = []string{issuer}
	}
	expires := time.Now().Add(time.Duration(*request.Spec.ExpirationSeconds) * time.Second)
	user := newUser(rbac.ServiceAccount(key), nil)
	user.UID, user.Expires = m.UID, expires
	text := a.add(token{user, key, request.Spec.Audiences})
	request.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}
	request.Status = authenticationv1.TokenRequestStatus{Token: text, ExpirationTimestamp: metav1.NewTime(expires)}
	return request, nil
}

func (a *authority) find(text string) (t token, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, found = a.tokens[text]
	return t, found
}

// identified returns next for the users of the requests.
func (a *authority) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, err := a.authenticate(r)
		if err == nil {
			r = r.WithContext(watchserver.WithUser(r.Context(), user))
			user, err = a.impersonate(r, user)
		}
		if err != nil {
			apihttp.WriteError(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(watchserver.WithUser(r.Context(), user)))
	})
}

// authenticate returns the user of a request. Without credentials, that is the admin.
func (a *authority) authenticate(r *http.Request) (kubeapi.User, error) {
	text, err := watchserver.BearerToken(r)
	if err == nil && text == "" && r.Header.Get("Authorization") == "" {
		return admin(), nil
	}
	t, ok := a.find(text)
	if err == nil && (!ok || a.checkToken(t, []string{issuer}) != nil) {
		err = &listwatch.Error{Code: listwatch.Unauthorized, Message: "Unauthorized"}
	}
	return t.user, err
}

// checkToken returns an error if a token is not valid for any of the audiences.
func (a *authority) checkToken(t token, audiences []string) error {
	isOne := func(audience string) bool { return slices.Contains(audiences, audience) }
	switch {
	case !t.user.Expires.IsZero() && !time.Now().Before(t.user.Expires):
		return fmt.Errorf("the token has expired")
	case t.audiences != nil && !slices.ContainsFunc(t.audiences, isOne):
		return fmt.Errorf("the token is for the audiences %q, not for %q", t.audiences, audiences)
	case t.account.Name == "":
		return nil
	}
	// The store is in memory, so an error means that there is no such object.
	o, err := a.api.named("serviceaccounts").Collection.Get(context.Background(), t.account)
	if err == nil {
		var m *listwatch.Metadata
		if m, err = rules.Metadata(o.Data); err == nil && m.UID != t.user.UID {
			err = listwatch.NotFound
		}
	}
	if err != nil {
		return fmt.Errorf("the service account %s has been deleted", t.account)
	}
	return nil
}

// impersonate returns the user as whom user wants to make the request r. It removes the headers
// that name this user. It returns user if there are none.
func (a *authority) impersonate(r *http.Request, user kubeapi.User) (kubeapi.User, error) {
	if apihttp.Impersonation(r) == "" {
		return user, nil
	}
	name := r.Header.Get(authenticationv1.ImpersonateUserHeader)
	uid := r.Header.Get(authenticationv1.ImpersonateUIDHeader)
	groups := r.Header[textproto.CanonicalMIMEHeaderKey(authenticationv1.ImpersonateGroupHeader)]
	if name == "" {
		return user, &listwatch.Error{
			Code: listwatch.Invalid, Message: "the request impersonates a group, a UID or an extra without a user",
		}
	}
	wanted := []kubeapi.Attributes{{Resource: kubeapi.Resource{Plural: "users"}, Name: name}}
	if key, ok := rbac.ParseServiceAccount(name); ok {
		wanted[0] = kubeapi.Attributes{
			Resource: kubeapi.Resource{Plural: "serviceaccounts"}, Namespace: key.Namespace, Name: key.Name,
		}
	}
	for _, group := range groups {
		wanted = append(wanted, kubeapi.Attributes{Resource: kubeapi.Resource{Plural: "groups"}, Name: group})
	}
	if uid != "" {
		wanted = append(wanted, kubeapi.Attributes{
			Resource: kubeapi.Resource{Group: authenticationv1.GroupName, Plural: "uids"}, Name: uid,
		})
	}
	for header, values := range r.Header {
		extra, ok := strings.CutPrefix(header, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		// An invalid escape results in the empty name.
		extra, _ = url.PathUnescape(strings.ToLower(extra))
		for _, value := range values {
			wanted = append(wanted, kubeapi.Attributes{
				Resource:    kubeapi.Resource{Group: authenticationv1.GroupName, Plural: "userextras"},
				Subresource: extra, Name: value,
			})
		}
	}
	for _, attributes := range wanted {
		attributes.Verb = "impersonate"
		if err := a.api.handler.Load().CheckAccess(r.Context(), attributes); err != nil {
			return user, err
		}
	}
	for header := range r.Header {
		if strings.HasPrefix(header, "Impersonate-") {
			r.Header.Del(header)
		}
	}
	as := newUser(name, groups)
	as.UID, as.Expires = uid, user.Expires
	return as, nil
}
