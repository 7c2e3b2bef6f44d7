package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// An idProvider is an OpenID Connect provider with one key.
type idProvider struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func startIDProvider(t *testing.T) *idProvider {
	t.Helper()
	return startIDProviderWith(t, httptest.NewServer)
}

func startIDProviderWith(t *testing.T, start func(http.Handler) *httptest.Server) *idProvider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &idProvider{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, p.URL, p.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","alg":"RS256","use":"sig","kid":"one","n":%q,"e":"AQAB"}]}`,
			encodeBase64(key.N.Bytes()))
	})
	p.Server = start(mux)
	t.Cleanup(p.Close)
	return p
}

func encodeBase64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token returns an ID token for an audience.
func (p *idProvider) token(t *testing.T, audience string) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{
		"iss": p.URL, "aud": audience, "sub": "1", "email": "ada@example.com", "exp": time.Now().Add(time.Hour).Unix(),
	})
	if err != nil {
		t.Fatal(err)
	}
	signed := encodeBase64([]byte(`{"alg":"RS256","kid":"one"}`)) + "." + encodeBase64(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + encodeBase64(signature)
}

func TestIDTokensIdentifyUsers(t *testing.T) {
	p := startIDProvider(t)
	policy := writeFile(t,
		`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"oidc:ada@example.com","namespace":"*","resource":"pods","apiGroup":"*","readonly":true}}`)
	s := startServer(t, "--oidc-issuer", p.URL, "--oidc-audience", "flags", "--oidc-username-claim", "email",
		"--oidc-username-prefix", "oidc:", "--token-file", writeFile(t, "secret,bob,1"), "--authorization-policy",
		policy)
	for name, c := range map[string]struct {
		token string
		code  int
	}{
		"an ID token":               {p.token(t, "flags"), http.StatusOK},
		"of another audience":       {p.token(t, "mail"), http.StatusUnauthorized},
		"a token of the file":       {"secret", http.StatusForbidden}, // known, but without rights
		"an unknown token":          {"other", http.StatusUnauthorized},
		"a token of another issuer": {startIDProvider(t).token(t, "flags"), http.StatusUnauthorized},
	} {
		if code, _, body := request(t, http.MethodGet, s.http+podsPath, "", "Authorization",
			"Bearer "+c.token); code != c.code {
			t.Errorf("%s: got %d %s, want %d", name, code, body, c.code)
		}
	}
	if code, _, _ := request(t, http.MethodGet, s.http+podsPath, ""); code != http.StatusUnauthorized &&
		code != http.StatusForbidden {
		t.Errorf("no token: got %d, want a refusal", code)
	}
}
