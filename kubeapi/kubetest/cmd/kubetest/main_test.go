package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
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

// TestEachOptionHasAFlag sets all flags, so that a new option of the package needs one.
func TestEachOptionHasAFlag(t *testing.T) {
	s, err := parse([]string{
		"--crd=a", "--object=b", "--webhook-config=c", "--webhook=https://127.0.0.1:9443", "--no-garbage-collection",
		"--no-namespace-deletion", "--no-finalizers", "--managed-fields",
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	options := reflect.ValueOf(s.Options)
	for i := range options.NumField() {
		if options.Field(i).IsZero() {
			t.Errorf("no flag sets the option %s", options.Type().Field(i).Name)
		}
	}
}

func TestWebhookServerGetsACertificate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	args := []string{"--webhook", "https://127.0.0.1:9443", "--webhook-certs", dir}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var certificates [2]tls.Certificate
	for i := range certificates {
		out, lines := io.Pipe()
		go func() { lines.CloseWithError(run(ctx, args, lines, io.Discard)) }()
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		_ = out.Close()
		var err error
		certificates[i], err = tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.EqualFunc(certificates[0].Certificate, certificates[1].Certificate, slices.Equal) {
		t.Error("the second start has replaced the certificate")
	}
}
