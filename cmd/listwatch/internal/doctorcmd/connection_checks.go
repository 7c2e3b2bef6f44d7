package doctorcmd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/listwatch/listwatch/transport"
)

// expiresSoon is the remaining validity below which a certificate counts as a problem, because it
// should have been renewed by then.
const expiresSoon = 14 * 24 * time.Hour

// checkCertificate reports whether a TLS connection is possible.
func (e *examination) checkCertificate(ctx context.Context) bool {
	const check = "certificate"
	address := e.collection.Host
	if e.collection.Port() == "" {
		address += ":443"
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: e.tls}).DialContext(ctx, "tcp", address)
	if err != nil {
		e.report.add(finding{Check: check, Verdict: problem, Text: explainTLS(err)})
		return false
	}
	defer conn.Close()
	state := conn.(*tls.Conn).ConnectionState()
	end := state.PeerCertificates[0].NotAfter
	text := fmt.Sprintf("valid until %s; %s", end.Format(time.DateTime), tls.VersionName(state.Version))
	switch {
	case e.SkipVerify:
		e.report.add(finding{Check: check, Verdict: unknown, Text: "not verified, because of --insecure-skip-verify"})
	case time.Until(end) < expiresSoon:
		e.report.add(
			finding{Check: check, Verdict: problem, Text: text + "; renew it: clients will not connect after that"})
	default:
		e.report.add(finding{Check: check, Verdict: fine, Text: text})
	}
	return true
}

// explainTLS returns a message that explains why a TLS connection failed, and how to solve the
// problem.
func explainTLS(err error) string {
	text := cli.OneLine(err)
	authority, isAuthority := errors.AsType[x509.UnknownAuthorityError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	_, isName := errors.AsType[x509.HostnameError](err)
	switch {
	case isAuthority:
		issuer := ""
		if authority.Cert != nil {
			issuer = " (issuer " + authority.Cert.Issuer.String() + ")"
		}
		return text + issuer +
			"; clients need its CA (--ca), or the server must also send its intermediate certificates"
	case isInvalid && invalid.Reason == x509.Expired:
		return text + "; renew the certificate, or set this machine's clock"
	case isName:
		return text + "; use one of these names, or a certificate for this one"
	}
	return cli.OneLine(remote.WithAdvice(err))
}

// checkList reports whether the collection can be read, and remembers the proxy's name.
func (e *examination) checkList(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	start := time.Now()
	response, err := e.get(ctx, e.negotiated, withQuery(e.collection, "limit", "1"), e.header())
	if err != nil {
		e.report.add(finding{Check: "list", Verdict: problem, Text: cli.OneLine(remote.WithAdvice(err))})
		return false
	}
	if response.StatusCode != http.StatusOK {
		err := transport.ResponseError(response) // closes the body
		e.report.add(
			finding{Check: "list", Verdict: problem, Text: "status " + response.Status + ": " + cli.OneLine(err)})
		return false
	}
	_, err = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	if err != nil {
		e.report.add(finding{Check: "list", Verdict: problem, Text: "the response ended early: " + cli.OneLine(err)})
		return false
	}
	e.proxy = proxyName(response.Header)
	text := fmt.Sprintf("%s over %s in %s", response.Status, response.Proto, round(time.Since(start)))
	if who := cmp.Or(response.Header.Get("Via"), response.Header.Get("Server")); who != "" {
		text += fmt.Sprintf("; answered by %q", who)
	}
	e.report.add(finding{Check: "list", Verdict: fine, Text: text})
	return true
}

// proxyName returns the name of the proxy that has written the headers h, or "" if h shows no known
// proxy.
func proxyName(h http.Header) string {
	text := strings.ToLower(h.Get("Server") + " " + h.Get("Via"))
	for _, p := range proxies {
		if strings.Contains(text, strings.ToLower(p)) {
			return p
		}
	}
	return ""
}

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
