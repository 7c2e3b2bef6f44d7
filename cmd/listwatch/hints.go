package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/listwatch/listwatch/kubeapi"
)

// hints prints what to try at e, one command a line, each as it can be pasted.
func (e *endpoint) hints(out io.Writer, command string) {
	if e.about.debug {
		fmt.Fprintf(out, "%s shows the inside, without credentials:\n\n", e.url)
		fmt.Fprintf(out, "  curl %s/debug/watches\n  curl -X POST %s/debug/compact\n\n", e.url, e.url)
		return
	}
	fmt.Fprintf(out, "Serving on %s over HTTP/1.1, HTTP/2 and WebSocket, %s. Try, in another terminal:\n\n", e.url, e.about.who())
	pods := kubeapi.DefaultResources()[0]
	list, in := e.url+pods.Path(""), e.url+pods.Path("default")
	curl := "curl" + e.about.curlFlags()
	fmt.Fprintf(out, "  %s \"%s?pretty=true\"\n", curl, list)
	fmt.Fprintf(out, "  %s -N \"%s?watch=true\"\n", curl, list)
	fmt.Fprintf(out, "  %s -H \"Content-Type: application/json\" -d '{\"metadata\":{\"name\":\"one\"}}' \"%s\"\n", curl, in)
	fmt.Fprintf(out, "  %s -X DELETE \"%s/one\"\n", curl, in)
	for _, transport := range []string{"chunked", "h2", "websocket"} {
		fmt.Fprintf(out, "  %s watch pods -A --server %s --transport %s%s\n", command, e.url, transport, e.about.clientFlags())
	}
	fmt.Fprintln(out)
}

func (a about) who() string {
	switch {
	case !a.asks:
		return "open to everybody who reaches it"
	case a.tokens && a.certificates:
		return "for holders of a token or a certificate"
	case a.tokens:
		return "for holders of a token"
	}
	return "for holders of a certificate"
}

// curlFlags are what curl needs to get in: a token where one will do, else files of the user's.
func (a about) curlFlags() string {
	var flags strings.Builder
	switch {
	case a.caFile != "":
		flags.WriteString(" --cacert " + a.caFile)
	case a.selfSigned:
		flags.WriteString(" -k")
	}
	switch {
	case a.tokens:
		flags.WriteString(` -H "Authorization: Bearer $TOKEN"`)
	case a.certificates:
		flags.WriteString(" --cert client.pem --key client-key.pem")
	}
	return flags.String()
}

// clientFlags are curlFlags for our own commands.
func (a about) clientFlags() string {
	var flags strings.Builder
	switch {
	case a.caFile != "":
		flags.WriteString(" --ca " + a.caFile)
	case a.selfSigned:
		flags.WriteString(" --insecure-skip-verify")
	}
	switch {
	case a.tokens:
		flags.WriteString(` --token "$TOKEN"`)
	case a.certificates:
		flags.WriteString(" --cert client.pem --key client-key.pem")
	}
	return flags.String()
}

// commandName is how to start this program once more: by its name where the shell finds that, and as in a fresh clone where the go
// command has built it to run it once.
func commandName() string {
	const name = "listwatch"
	if _, err := exec.LookPath(name); err == nil {
		return name
	}
	self := os.Args[0]
	if strings.Contains(filepath.ToSlash(self), "/go-build") {
		return "go run ./cmd/" + name
	}
	return self
}
