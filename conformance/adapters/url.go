package adapters

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/cases"
)

// URL returns the target at a URL that lists and, with watch=1, watches. Only cases that write nothing can be run. A URL that is none, or has a
// query that the cases could not keep, is an error of code Invalid.
func URL(ctx context.Context, address string, a Options) (cases.Target, error) {
	u, err := parseURL(address)
	if err != nil {
		return cases.Target{}, err
	}
	if u.RawQuery != "" {
		return cases.Target{}, invalidf("%s: the cases ask with queries of their own: leave %q out", address, u.RawQuery)
	}
	r := newREST(u, a)
	defer r.close()
	probe, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var list struct{ Kind string }
	if err := r.ask(probe, "GET", "", nil, nil, &list); err != nil {
		return cases.Target{}, unusable(address, err)
	}
	kind, isList := strings.CutSuffix(list.Kind, "List")
	if !isList {
		return cases.Target{}, unusable(address, invalidf("a GET is answered with kind %q, want a list, as in PodList", list.Kind))
	}
	site := cases.Instance{URL: u, Kind: kind, Network: a.network(), Header: a.Header}
	notes := []string{"of a URL alone the cases are those that write nothing"}
	if strings.HasPrefix(u.Path, "/api/") || strings.HasPrefix(u.Path, "/apis/") {
		notes[0] += fmt.Sprintf("; for Kubernetes' API at %s://%s there is --kube, which writes and tests far more", u.Scheme, u.Host)
	}
	t := cases.Target{Name: u.Host, Patience: a.Timeout, Notes: notes, Open: func(t cases.T, _ cases.Setup) *cases.Instance {
		t.Helper()
		alive(t, u)
		s := site
		return &s
	}}
	return t, tryWays(ctx, &t, &site)
}

// alive fails t, before its case begins, where nobody listens at u any more.
func alive(t cases.T, u *url.URL) {
	t.Helper()
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	c, err := (&net.Dialer{Timeout: probeTime}).DialContext(t.Context(), "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		t.Fatalf("the server does not answer any more: %v", err)
	}
	c.Close()
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, invalidf("%q is no URL of a server: want one like http://127.0.0.1:8080/api/v1/pods", text)
	}
	if u.User != nil {
		return nil, invalidf("%s: a password in a URL would be in every report; give a header instead", u.Redacted())
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

func invalidf(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf(format, args...)}
}

func isUntrusted(err error) bool {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return untrusted
}
