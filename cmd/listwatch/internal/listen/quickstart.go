package listen

import (
	"fmt"
	"io"

	"github.com/listwatch/listwatch/kubeapi"
)

// An endpointAccess describes how clients can access an endpoint.
type endpointAccess struct {
	debug, metrics   bool
	needsCredentials bool // otherwise anonymous access is allowed
	tokens           bool // tokens are accepted
	certificates     bool // client certificates are accepted
	selfSigned       bool
	caFile           string // file with the self-signed certificate, if it was written
}

// PrintQuickstart prints commands to try, one per line, which can be pasted into a shell: several
// with the first resource, and a watch of each of the others.
func (e *Endpoint) PrintQuickstart(out io.Writer, command string, resources ...kubeapi.Resource) {
	if e.printMonitoring(out, "-X POST "+e.url+"/debug/compact") {
		return
	}
	fmt.Fprintf(out, "Serving on %s over HTTP/1.1, HTTP/2 and WebSocket, %s. Try in another terminal:\n\n", e.url,
		e.access.description())
	r, curl := resources[0], "curl"+e.access.curlFlags()
	fmt.Fprintf(out, tryReads, curl, e.url+r.Path(""), sampleKey)
	if !r.ReadOnly {
		fmt.Fprintf(out, tryWrites, curl, e.url+r.Path("default"))
	}
	for _, transport := range []string{"chunked", "h2", "websocket"} {
		fmt.Fprintf(out, "  %s watch %s%s --transport %s%s\n", command, e.url, r.Path(""), transport,
			e.access.listwatchFlags())
	}
	for _, other := range resources[1:] {
		fmt.Fprintf(out, "  %s -N \"%s%s?watch=true\"\n", curl, e.url, other.Path(""))
	}
	fmt.Fprintln(out)
}

const (
	tryReads = `  %[1]s "%[2]s?pretty=true"
  %[1]s -N "%[2]s?watch=true"
  %[1]s -iN --http1.1 -H "Connection: Upgrade" -H "Upgrade: websocket" -H "Sec-WebSocket-Version: 13" -H "Sec-WebSocket-Key: %[3]s" "%[2]s?watch=true"
`
	tryWrites = `  %[1]s -H "Content-Type: application/json" -d '{"metadata":{"name":"one"}}' "%[2]s"
  %[1]s -X DELETE "%[2]s/one"
`
)

// printMonitoring prints commands to try if e serves metrics or debug endpoints, and reports
// whether it does. curl contains the arguments of one more command for the debug endpoints.
func (e *Endpoint) printMonitoring(out io.Writer, curl string) bool {
	switch {
	case e.access.metrics:
		fmt.Fprintf(out, "Metrics on %[1]s, without credentials:\n\n  curl %[1]s/metrics\n\n", e.url)
	case e.access.debug:
		fmt.Fprintf(out, "Debug endpoints and the console on %[1]s, without credentials:\n\n"+
			"  curl %[1]s/debug/watches\n  curl %[2]s\n\n", e.url, curl)
	}
	return e.access.metrics || e.access.debug
}

// sampleKey is the example key of RFC 6455: 16 bytes in base64.
const sampleKey = "dGhlIHNhbXBsZSBub25jZQ=="

func (a endpointAccess) description() string {
	switch {
	case !a.needsCredentials:
		return "without credentials"
	case a.tokens && a.certificates:
		return "with a token or a client certificate"
	case a.tokens:
		return "with a token"
	}
	return "with a client certificate"
}

// credentialFlags returns the flags that a command needs to access the endpoint.
func (a endpointAccess) credentialFlags(ca, skipVerify, token string) string {
	flags := ""
	switch {
	case a.caFile != "":
		flags = " " + ca + " " + a.caFile
	case a.selfSigned:
		flags = " " + skipVerify
	}
	switch {
	case a.tokens:
		flags += " " + token
	case a.certificates:
		flags += " --cert client.pem --key client-key.pem"
	}
	return flags
}

func (a endpointAccess) curlFlags() string {
	return a.credentialFlags("--cacert", "-k", `-H "Authorization: Bearer $TOKEN"`)
}

func (a endpointAccess) listwatchFlags() string {
	return a.credentialFlags("--ca", "--insecure-skip-verify", `--token "$TOKEN"`)
}

// PrintRelayQuickstart prints commands to try with a relay.
func (e *Endpoint) PrintRelayQuickstart(out io.Writer, command string, paths []string) {
	if e.printMonitoring(out, e.url+"/debug/relays") {
		return
	}
	fmt.Fprintf(out, "Relaying on %s over HTTP/1.1, HTTP/2 and WebSocket, %s. Try in another terminal:\n\n", e.url,
		e.access.description())
	for _, at := range paths {
		fmt.Fprintf(out, "  curl%s -N \"%s%s?watch=true\"\n", e.access.curlFlags(), e.url, at)
		fmt.Fprintf(out, "  %s watch %s%s%s\n", command, e.url, at, e.access.listwatchFlags())
	}
	fmt.Fprintf(out, "  curl%s %s/readyz\n\n", e.access.curlFlags(), e.url)
}
