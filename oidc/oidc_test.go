package oidc_test

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/oidc"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// An issuer is an identity provider. Its key can be replaced, and it can be down.
type issuer struct {
	*httptest.Server // without a listener in tests that use the issuer as an http.RoundTripper
	down             atomic.Bool
	fetches          atomic.Int32 // of the keys

	mu  sync.Mutex
	key *rsa.PrivateKey // guarded by mu
	id  string          // guarded by mu
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := startIssuer()
	t.Cleanup(i.Close)
	return i
}

func startIssuer() *issuer {
	i := &issuer{}
	i.rotate("one")
	i.Server = httptest.NewServer(i.handler())
	return i
}

// inMemory returns an issuer for use as an http.RoundTripper.
func inMemory() *issuer {
	i := &issuer{Server: &httptest.Server{URL: "https://id.example.com"}}
	i.rotate("one")
	return i
}

// RoundTrip implements http.RoundTripper, without a network.
func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	i.handler().ServeHTTP(w, r)
	return w.Result(), nil
}

func (i *issuer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.respond(w, map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/auth",
			"token_endpoint":                        i.URL + "/token",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		i.mu.Lock()
		key, id := i.key.PublicKey, i.id
		i.mu.Unlock()
		i.respond(w, map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": id,
			"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	return mux
}

func (i *issuer) respond(w http.ResponseWriter, body any) {
	if i.down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func (i *issuer) rotate(id string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // the size is valid
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.id = key, id
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token returns a token for the audience "flags" that is valid for an hour, with these claims in
// addition.
func (i *issuer) token(claims map[string]any) string {
	i.mu.Lock()
	key, id := i.key, i.id
	i.mu.Unlock()
	signed := encode(mustJSON(map[string]any{"alg": "RS256", "kid": id})) + "." + encode(i.payload(claims))
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err) // the key is valid
	}
	return signed + "." + encode(signature)
}

func (i *issuer) payload(claims map[string]any) []byte {
	all := map[string]any{
		"iss": i.URL, "aud": "flags", "sub": "ada-1", "exp": time.Now().Add(time.Hour).Unix(),
		"groups": []string{"writers"},
	}
	for name, value := range claims {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	return mustJSON(all)
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values are strings, numbers, lists and maps
	}
	return data
}

func withToken(token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func mustNew(t *testing.T, o oidc.Options) watchserver.Authenticator {
	t.Helper()
	return testkit.Must(oidc.New(o))(t)
}

func TestTokensOfIssuerAreVerified(t *testing.T) {
	i := newIssuer(t)
	a := mustNew(t, oidc.Options{Issuer: i.URL, Audience: "flags"})
	u, err := a(withToken(i.token(nil)))
	if err != nil || u.Name != "ada-1" || u.UID != "ada-1" || fmt.Sprint(u.Groups) != "[writers]" {
		t.Errorf("got %+v, %v, want the user ada-1 of the group writers", u, err)
	}
	if left := time.Until(u.Expires); left > time.Hour || left < time.Minute {
		t.Errorf("the user expires in %v, want the expiry of the token", left)
	}
	signed := encode(mustJSON(map[string]any{"alg": "HS256", "kid": "one"})) + "." + encode(i.payload(nil))
	mac := hmac.New(sha256.New, i.key.N.Bytes())
	mac.Write([]byte(signed))
	forged := i.token(nil)
	for name, token := range map[string]string{
		"another audience":   i.token(map[string]any{"aud": "mail"}),
		"expired":            i.token(map[string]any{"exp": time.Now().Add(-time.Second).Unix()}),
		"without an expiry":  i.token(map[string]any{"exp": nil}),
		"not valid yet":      i.token(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
		"without a subject":  i.token(map[string]any{"sub": nil}),
		"a reserved name":    i.token(map[string]any{"sub": "system:admin"}),
		"a reserved group":   i.token(map[string]any{"groups": []string{"system:masters"}}),
		"groups of numbers":  i.token(map[string]any{"groups": []int{1}}),
		"a wrong signature":  forged[:len(forged)-8] + "AAAAAAAA",
		"no signature":       encode(mustJSON(map[string]any{"alg": "none"})) + "." + encode(i.payload(nil)) + ".",
		"a symmetric secret": signed + "." + encode(mac.Sum(nil)),
	} {
		if u, err := a(withToken(token)); !errors.Is(err, listwatch.Unauthorized) || u.Name != "" {
			t.Errorf("%s: got %+v, %v, want Unauthorized", name, u, err)
		}
	}
	for name, token := range map[string]string{
		"another issuer": i.token(map[string]any{"iss": "https://other.example.com"}), "not a JSON Web Token": "secret",
		"three parts": "a.b.c",
	} {
		if u, err := a(withToken(token)); err != nil || u.Name != "" {
			t.Errorf("%s: got %+v, %v, want no user", name, u, err)
		}
	}
	if u, err := a(httptest.NewRequest(http.MethodGet, "/", nil)); err != nil || u.Name != "" {
		t.Errorf("no token: got %+v, %v, want no user", u, err)
	}
}

func TestClaimsAreConfigured(t *testing.T) {
	i := newIssuer(t)
	a := mustNew(t, oidc.Options{
		Issuer: i.URL, Audience: "flags", UserClaim: "email", UserPrefix: "oidc:", GroupsClaim: "roles",
		GroupsPrefix: "oidc:",
	})
	u,
		err := a(
		withToken(i.token(map[string]any{"email": "ada@example.com", "email_verified": true, "roles": "admin"})))
	if err != nil || u.Name != "oidc:ada@example.com" || fmt.Sprint(u.Groups) != "[oidc:admin]" {
		t.Errorf("got %+v, %v", u, err)
	}
	if _,
		err := a(withToken(i.token(map[string]any{"email": "ada@example.com", "email_verified": false}))); !errors.Is(
		err, listwatch.Unauthorized) {
		t.Errorf("an address that was not verified: got %v, want Unauthorized", err)
	}
	for _, o := range []oidc.Options{{Issuer: i.URL}, {Audience: "flags"}} {
		if _, err := oidc.New(o); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("got %v, want Invalid", err)
		}
	}
}

func TestKeysAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := inMemory()
		o := oidc.Options{Issuer: i.URL, Audience: "flags", HTTPClient: &http.Client{Transport: i}}
		// verify waits until go-oidc has stored the result, which it does after returning it.
		verify := func(a watchserver.Authenticator, token string) (watchserver.User, error) {
			defer synctest.Wait()
			return a(withToken(token))
		}
		a := mustNew(t, o)
		u, err := verify(a, i.token(nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Recheck(); err != nil {
			t.Errorf("recheck: got %v", err)
		}
		i.rotate("two")
		i.down.Store(true)
		if _, err := verify(a, i.token(nil)); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("without the provider: got %v, want Unavailable", err)
		}
		late := mustNew(t, o)
		if _, err := verify(late, i.token(nil)); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("a start without the provider: got %v, want Unavailable", err)
		}
		if u, err := verify(late, "a token of another authenticator"); err != nil || u.Name != "" {
			t.Errorf("another token without the provider: got %+v, %v, want no user", u, err)
		}
		i.down.Store(false)
		if u, err := verify(late, i.token(nil)); err != nil || u.Name != "ada-1" {
			t.Errorf("after a start without the provider: got %+v, %v", u, err)
		}
		if _, err := verify(a, i.token(nil)); err != nil {
			t.Errorf("a token with the new key: got %v", err)
		}
		if _, err := u.Recheck(); !errors.Is(err, listwatch.Unauthorized) {
			t.Errorf("a recheck after the key was withdrawn: got %v, want Unauthorized", err)
		}
	})
}

// However many tokens have unknown keys, the provider receives few requests, and tokens with known
// keys are verified without a delay.
func TestUnknownKeysDoNotFloodTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := inMemory()
		a := mustNew(t, oidc.Options{Issuer: i.URL, Audience: "flags", HTTPClient: &http.Client{Transport: i}})
		verify := func(token string) time.Duration {
			start := time.Now()
			if _, err := a(withToken(token)); err != nil {
				t.Errorf("got %v", err)
			}
			return time.Since(start)
		}
		verify(i.token(nil))
		start := time.Now()
		var attackers sync.WaitGroup
		for n := range 20 {
			attackers.Go(func() {
				for m := 0; time.Since(start) < time.Minute; m++ {
					header := encode(mustJSON(map[string]any{"alg": "RS256", "kid": fmt.Sprint(n, "-", m)}))
					if _, err := a(withToken(header + "." + encode(i.payload(nil)) + ".AAAA")); !errors.Is(err,
						listwatch.Unauthorized) {
						t.Errorf("a forged token: got %v, want Unauthorized", err)
					}
				}
			})
		}
		<-time.After(time.Minute / 2)
		if took := verify(i.token(nil)); took != 0 {
			t.Errorf("a token with a known key: took %v", took)
		}
		i.rotate("two")
		if took := verify(i.token(nil)); took > 10*time.Second {
			t.Errorf("a token with a new key: took %v", took)
		}
		attackers.Wait()
		if n := i.fetches.Load(); n > 70 {
			t.Errorf("the provider received %d requests for keys in a minute", n)
		}
	})
}

// A watch survives the expiry of many tokens, because the client sends a new one each time.
func TestWatchContinuesWithNewTokens(t *testing.T) {
	i := newIssuer(t)
	type note struct {
		listwatch.Metadata `json:"metadata"`
	}
	notes := memory.New[note]()
	s := httptest.NewServer(&watchserver.Server{
		Source: notes,
		Access: watchserver.Access{Authenticator: mustNew(t, oidc.Options{Issuer: i.URL, Audience: "flags"})},
	})
	defer s.Close()
	var tokens atomic.Int32
	remote := &client.Remote{URL: s.URL, Header: func(context.Context, bool) (http.Header, error) {
		tokens.Add(1)
		token := i.token(map[string]any{"exp": time.Now().Add(2 * time.Second).Unix()})
		return http.Header{"Authorization": {"Bearer " + token}}, nil
	}}
	defer remote.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := remote.Watch(ctx, listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	write := func(n int) {
		if _, err := notes.Create(ctx, note{listwatch.Metadata{Name: fmt.Sprintf("n%d", n)}}); err != nil {
			t.Error(err)
		}
	}
	write(1)
	seen := 0
	for e, err := range listwatch.All(ctx, w) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != listwatch.Added {
			continue
		}
		if seen++; e.Object.Key.Name != fmt.Sprintf("n%d", seen) {
			t.Fatalf("got %s as event %d", e.Object.Key.Name, seen)
		}
		if tokens.Load() >= 4 {
			break
		}
		next := seen + 1
		time.AfterFunc(200*time.Millisecond, func() { write(next) })
	}
}

// A hangingProvider never responds.
type hangingProvider struct{}

func (hangingProvider) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestHangingProviderFailsTheRequest(t *testing.T) {
	i := inMemory()
	token := i.token(nil)
	synctest.Test(t, func(t *testing.T) {
		authenticate := mustNew(t,
			oidc.Options{Issuer: i.URL, Audience: "flags", HTTPClient: &http.Client{Transport: hangingProvider{}}})
		start := time.Now()
		if _, err := authenticate(withToken(token)); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("got error %v, want Unavailable", err)
		}
		if took := time.Since(start); took > 11*time.Second {
			t.Errorf("the request failed after %v, want 10 s", took)
		}
	})
}
