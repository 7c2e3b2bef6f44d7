package adapters

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/listwatch/listwatch/conformance/harness"
)

// URL returns a target for a URL that serves lists and, with watch=1, watches. Only the
// cases that do not write can run. An invalid URL, or one with a query, is an error of code
// Invalid.
func URL(ctx context.Context, address string, o Options) (harness.Target, error) {
	u, err := parseURL(address)
	if err != nil {
		return harness.Target{}, err
	}
	if u.RawQuery != "" {
		return harness.Target{}, invalidf("%s: remove the query %q: the cases add their own", address, u.RawQuery)
	}
	r := newREST(u, o)
	defer r.close()
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var list struct{ Kind string }
	if err := r.do(probe, "GET", "", nil, nil, &list); err != nil {
		return harness.Target{}, untestable(address, err)
	}
	kind, isList := strings.CutSuffix(list.Kind, "List")
	if !isList {
		return harness.Target{}, untestable(address,
			invalidf("a GET returned kind %q, want a list kind such as PodList", list.Kind))
	}
	site := harness.Instance{URL: u, Kind: kind, Network: o.network(), Header: o.Header}
	notes := []string{"a URL only allows the cases that do not write"}
	if strings.HasPrefix(u.Path, "/api/") || strings.HasPrefix(u.Path, "/apis/") {
		notes[0] += fmt.Sprintf("; to run all cases, test Kubernetes' API with --kube %s://%s", u.Scheme, u.Host)
	}
	t := harness.Target{Name: u.Host, Patience: o.Timeout, Notes: notes}
	t.Open = func(t harness.T, _ harness.Setup) *harness.Instance {
		t.Helper()
		if err := ping(t.Context(), u); err != nil {
			t.Fatalf("the server is no longer reachable: %v", err)
		}
		s := site
		return &s
	}
	t.Ping = func(ctx context.Context) error { return ping(ctx, u) }
	return t, probeVariants(ctx, &t, &site)
}

// ping returns an error if no server listens at u.
func ping(ctx context.Context, u *url.URL) error {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	c, err := (&net.Dialer{Timeout: probeTimeout}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return err
	}
	return c.Close()
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, invalidf("URL %q: must be an http or https URL such as http://127.0.0.1:8080/api/v1/pods", text)
	}
	if u.User != nil {
		return nil, invalidf("%s: must not contain a password, which would appear in reports; pass a header instead",
			u.Redacted())
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}
