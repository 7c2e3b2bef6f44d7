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

// PrintQuickstart prints commands to try, one per line, which can be pasted into a shell.
func (e *Endpoint) PrintQuickstart(out io.Writer, command string) {
	if e.printMetrics(out) {
		return
	}
	if e.access.debug {
		fmt.Fprintf(out, "Debug endpoints and the console on %s, without credentials:\n\n", e.url)
		fmt.Fprintf(out, "  curl %s/debug/watches\n  curl -X POST %s/debug/compact\n\n", e.url, e.url)
		return
	}
	fmt.Fprintf(out, "Serving on %s over HTTP/1.1, HTTP/2 and WebSocket, %s. Try in another terminal:\n\n", e.url,
		e.access.description())
	pods := kubeapi.DefaultResources()[0]
	list, in := e.url+pods.Path(""), e.url+pods.Path("default")
	curl := "curl" + e.access.curlFlags()
	fmt.Fprintf(out, "  %s \"%s?pretty=true\"\n", curl, list)
	fmt.Fprintf(out, "  %s -N \"%s?watch=true\"\n", curl, list)
	fmt.Fprintf(
		out,
		"  %s -iN --http1.1 -H \"Connection: Upgrade\" -H \"Upgrade: websocket\" -H \"Sec-WebSocket-Version: 13\" -H \"Sec-WebSocket-Key: %s\" \"%s?watch=true\"\n",
		curl, sampleKey, list)
	fmt.Fprintf(out, "  %s -H \"Content-Type: application/json\" -d '{\"metadata\":{\"name\":\"one\"}}' \"%s\"\n", curl,
		in)
	fmt.Fprintf(out, "  %s -X DELETE \"%s/one\"\n", curl, in)
	for _, transport := range []string{"chunked", "h2", "websocket"} {
		fmt.Fprintf(out, "  %s watch pods -A --server %s --transport %s%s\n", command, e.url, transport,
			e.access.listwatchFlags())
	}
	fmt.Fprintln(out)
}

// printMetrics prints a command to try if e serves metrics. It reports whether e serves metrics.
func (e *Endpoint) printMetrics(out io.Writer) bool {
	if e.access.metrics {
		fmt.Fprintf(out, "Metrics on %s, without credentials:\n\n  curl %s/metrics\n\n", e.url, e.url)
	}
	return e.access.metrics
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
	if e.printMetrics(out) {
		return
	}
	if e.access.debug {
		fmt.Fprintf(
			out, "Debug endpoints and the console on %s, without credentials:\n\n  curl %s/debug/relays\n  curl %s/debug/watches\n\n", e.url, e.url, e.url)
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
