package main

import (
	"strings"
	"testing"
)

func TestOpenServerRefusesOtherHosts(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0", "--debug-addr", "127.0.0.1:0")
	for _, url := range []string{s.http + "/api/v1/pods", s.debug + "/debug/watches", s.debug + "/console/"} {
		out, ended := curl(t, `curl -sS -H "Host: evil.example" -H "Origin: http://evil.example" `+url)
		<-ended
		if got := out.String(); !strings.Contains(got, `"reason":"Forbidden"`) {
			t.Errorf("%s with the Host header of another host: got %s, want 403", url, got)
		}
	}
}
