package main

import (
	"strings"
	"testing"
)

func TestOnlyLoopbackIsALocalHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:8080": true, "a.localhost": true, "127.0.0.1": true, "127.0.0.1:80": true, "[::1]:80": true, "[::1]": true,
		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "10.0.0.1": false, "0.0.0.0": false, "": false,
	} {
		if got := isLocalHost(host); got != want {
			t.Errorf("%q: got %v", host, got)
		}
	}
}

func TestAnOpenServerOnLoopbackRefusesOtherHosts(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0", "--debug-addr", "127.0.0.1:0")
	for _, url := range []string{s.http + "/api/v1/pods", s.debug + "/debug/watches"} {
		out, ended := curl(t, `curl -sS -H "Host: evil.example" -H "Origin: http://evil.example" `+url)
		<-ended
		if got := out.String(); !strings.Contains(got, `"reason":"Forbidden"`) {
			t.Errorf("%s for another host: got %s, want 403", url, got)
		}
	}
}
