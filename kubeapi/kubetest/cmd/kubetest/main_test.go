package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestProgramServesUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out, lines := io.Pipe()
	ended := make(chan error)
	go func() { ended <- run(ctx, []string{"--crd", "../../testdata/crds"}, lines, io.Discard) }()
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // returns when the test closes lines
	defer lines.Close()
	_, url, _ := strings.Cut(strings.TrimSuffix(first, ". Try in another terminal:\n"), "on ")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/apis/demo.example.com/v1/widgets", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("got status %d from a list of custom resources", response.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestCommandLineIsChecked(t *testing.T) {
	for _, args := range [][]string{{"--crd", "missing.yaml"}, {"serve"}, {"--port"}, {"--addr", "nowhere"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q: got no error", args)
		}
	}
}
