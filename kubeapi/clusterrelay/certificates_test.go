package clusterrelay

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// An authority signs certificates of clients.
type authority struct {
	tls.Certificate
	pool *x509.CertPool
}

// The relay trusts clientCA, and the API server trusts frontCA for front proxies.
var (
	clientCA = sync.OnceValue(func() *authority { return newAuthority("CA of clients") })
	frontCA  = sync.OnceValue(func() *authority { return newAuthority("CA of front proxies") })
)

func newAuthority(name string) *authority {
	a := &authority{pool: x509.NewCertPool()}
	a.Certificate = testhttp.Sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	a.pool.AddCert(a.Leaf)
	return a
}

// sign returns a client certificate that is signed by a.
func (a *authority) sign(subject pkix.Name) *tls.Certificate {
	c := testhttp.Sign(&x509.Certificate{
		Subject: subject, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, &a.Certificate)
	return &c
}

// A certifiedCluster is a cluster whose clients have certificates.
type certifiedCluster struct {
	*cluster
	revoked atomic.Bool // no certificate is accepted any more
}

// withCertificates calls f with a cluster in which users may read the namespace with their name.
func withCertificates(t *testing.T, front func() tls.Certificate, f func(c *certifiedCluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := new(certifiedCluster)
		verify := func(r *http.Request) (watchserver.User, error) {
			u, err := kubeapi.ClientCertificate(r)
			u.Recheck = func() (watchserver.User, error) {
				if c.revoked.Load() {
					return watchserver.User{}, errors.New("revoked")
				}
				return u, nil
			}
			return u, err
		}
		c.cluster = startCluster(t, Options{Certificates: verify, FrontProxy: front})
		c.change(func() {
			c.allowed = func(u watchserver.User, a access) bool {
				return u.Name == a.namespace && slices.Equal(u.Groups, []string{"team", authenticatedGroup})
			}
		})
		for _, name := range []string{"a", "b"} {
			c.create("/api/v1/namespaces/"+name+"/pods", named("pod-of-"+name))
		}
		f(c)
	})
}

// sendAs sends a request through the relay with a certificate.
func (c *certifiedCluster) sendAs(certificate *tls.Certificate, method, path, body string, header ...string) response {
	c.Helper()
	config := c.tls.Clone()
	config.Certificates = []tls.Certificate{*certificate}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	network := transport.Network{Dial: c.dial, TLS: config}
	t := network.HTTPTransport(protocols)
	defer t.CloseIdleConnections()
	before := c.client
	c.client = t
	defer func() { c.client = before }()
	return c.send("", method, c.relayed+path, body, header...)
}

func certificateOf(name string) *tls.Certificate {
	return clientCA().sign(pkix.Name{CommonName: name, Organization: []string{"team"}})
}

func TestCertificatesReadFromCaches(t *testing.T) {
	withCertificates(t, nil, func(c *certifiedCluster) {
		ann := certificateOf("a")
		for _, query := range []string{"", "?resourceVersion=0", "?watch=true&timeoutSeconds=1"} {
			got := c.sendAs(ann, "GET", podsPath+query, "")
			if got.code != http.StatusOK || !strings.Contains(got.body, "pod-of-a") ||
				strings.Contains(got.body, "pod-of-b") {
				c.Errorf("%s: got %d %s, want the pods of the user", query, got.code, got.body)
			}
		}
		if n := c.count("a GET " + podsPath); n != 0 {
			c.Errorf("the API server received %d lists, want none", n)
		}
		// The certificate counts, not the token.
		if got := c.sendAs(ann, "GET", podsPath, "", "Authorization", "Bearer of-nobody"); got.code != http.StatusOK {
			c.Errorf("with a wrong token: got %d %s, want 200", got.code, got.body)
		}
		if got := c.sendAs(certificateOf("b"), "GET", podsPath, "", "Authorization",
			"Bearer "+relayToken); got.code != http.StatusUnauthorized {
			c.Errorf("another user: got %d %s, want 401", got.code, got.body)
		}
	})
}

func TestCertificatesAreNotPassedOn(t *testing.T) {
	withCertificates(t, nil, func(c *certifiedCluster) {
		ann := certificateOf("a")
		c.sendAs(ann, "GET", podsPath, "") // starts the cache
		for _, request := range [][]string{
			{"POST", podsPath, named("two")},
			{"GET", podsPath + "/pod-of-a", ""},
			{"GET", podsPath + "/missing?resourceVersion=0", ""},
			{"GET", "/api/v1/namespaces/b/pods", ""},
			{"GET", "/api/v1/namespaces/b/pods?watch=true", ""},
			{"GET", "/version", ""},
		} {
			before := c.count("relay GET " + request[1])
			got := c.sendAs(ann, request[0], request[1], request[2], "X-Remote-User", "relay", "Authorization",
				"Bearer "+relayToken)
			if got.code != http.StatusUnauthorized || !strings.Contains(got.body, "--front-proxy-cert") ||
				strings.Contains(got.body, "pod-of-b") {
				c.Errorf("%q: got %d %s, want 401 with advice", request, got.code, got.body)
			}
			if c.count("relay GET "+request[1]) != before {
				c.Errorf("%q: the API server received the request", request)
			}
		}
	})
}

func TestFrontProxyPassesTheUserOn(t *testing.T) {
	certificate := frontCA().sign(pkix.Name{CommonName: "front"})
	front := func() tls.Certificate { return *certificate }
	withCertificates(t, front, func(c *certifiedCluster) {
		forged := []string{
			"X-Remote-User", "b", "X-Remote-Group", "system:masters", "X-Remote-Extra-Scopes", "all", "X-Remote-Uid",
			"1",
			"X-My-User", "b", "Remote-User", "b", "x-remote-user", "b", "Authorization", "Bearer " + relayToken,
			"Connection", "close, X-Remote-User, X-Remote-Group", "Kept", "yes",
		}
		ann := certificateOf("a")
		if got := c.sendAs(ann, "POST", podsPath, named("two"), forged...); got.code != http.StatusCreated {
			c.Fatalf("create: got %d %s, want 201", got.code, got.body)
		}
		c.change(func() {
			for name, want := range map[string][]string{
				"X-Remote-User": {"a"}, "X-Remote-Group": {"team", authenticatedGroup}, "X-Remote-Uid": nil,
				"X-My-User":   nil,
				"Remote-User": nil, "Authorization": nil, "X-Remote-Extra-Scopes": nil, "Kept": {"yes"},
			} {
				if got := c.seen[name]; !slices.Equal(got, want) {
					c.Errorf("the API server received %s: %q, want %q", name, got, want)
				}
			}
		})
		if got := c.sendAs(ann, "GET", podsPath+"/two", ""); got.code != http.StatusOK {
			c.Errorf("get: got %d %s, want 200", got.code, got.body)
		}
		for _, request := range [][]string{{"GET", ""}, {"POST", named("three")}} {
			got := c.sendAs(ann, request[0], "/api/v1/namespaces/b/pods", request[1], forged...)
			if got.code != http.StatusForbidden || !strings.Contains(got.body, "refused by the API server") {
				c.Errorf("%s: got %d %s, want the refusal of the API server", request[0], got.code, got.body)
			}
		}
		// Without a certificate, the headers mean nothing: the relay does not present its own one.
		for _, credential := range []string{"", "of-bob"} {
			got := c.send(credential, "GET", c.relayed+podsPath+"/two", "", "X-Remote-User", "a", "X-Remote-Group",
				"team")
			if got.code != http.StatusUnauthorized && got.code != http.StatusForbidden {
				c.Errorf("token %q: got %d %s, want 401 or 403", credential, got.code, got.body)
			}
		}
	})
}

func TestUnusableCertificatesAreRefused(t *testing.T) {
	withCertificates(t, nil, func(c *certifiedCluster) {
		for _, subject := range []pkix.Name{
			{CommonName: " a", Organization: []string{"team"}},
			{CommonName: "a\n", Organization: []string{"team"}},
			{CommonName: "a", Organization: []string{"team", "x "}},
			{Organization: []string{"team"}},
		} {
			if got := c.sendAs(clientCA().sign(subject), "GET", podsPath, ""); got.code != http.StatusUnauthorized {
				c.Errorf("%q: got %d %s, want 401", subject, got.code, got.body)
			}
		}
		// The relay does not name the CA of this certificate, so the client does not send it.
		other := frontCA().sign(pkix.Name{CommonName: "a", Organization: []string{"team"}})
		if got := c.sendAs(other, "GET", podsPath, ""); got.code != http.StatusUnauthorized {
			c.Errorf("another CA: got %d %s, want 401", got.code, got.body)
		}
	})
}

func TestWatchesEndWithTheCertificate(t *testing.T) {
	withCertificates(t, nil, func(c *certifiedCluster) {
		time.AfterFunc(time.Second, func() { c.revoked.Store(true) })
		opened := time.Now()
		got := c.sendAs(certificateOf("a"), "GET", podsPath+"?watch=true&timeoutSeconds=600", "")
		if !strings.Contains(got.body, `"code":401`) || time.Since(opened) > recheckInterval+time.Second {
			c.Errorf("after %v: got %s, want an ERROR event with 401 at the next review", time.Since(opened), got.body)
		}
	})
}
