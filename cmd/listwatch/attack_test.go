package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A client without credentials must not delay the end of the server.
func TestUnfinishedBodiesDoNotDelayShutdown(t *testing.T) {
	p := startProcess(t, nil, "serve", "--addr", "127.0.0.1:0")
	address := strings.TrimPrefix(p.awaitURL(t), "http://")
	for _, line := range []string{"POST /api/v1/namespaces/default/pods", "POST /nothing", "GET /js/listwatch.js", "PUT /js/"} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", line)
		if strings.HasPrefix(line, "GET") { // the others may still wait for the body
			if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	start := time.Now()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if code, stderr := p.exit(); code != 0 || strings.Contains(stderr, "did not end in time") || time.Since(start) > 9*time.Second {
		t.Errorf("exit code %d after %v, want 0 before the timeout of 10 s; stderr:\n%s", code, time.Since(start), stderr)
	}
}
