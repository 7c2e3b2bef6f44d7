package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The server must keep running if its terminal closes, or if the reader of its output exits, such
// as head in a pipeline.
func TestServerSurvivesTheEndOfItsOutput(t *testing.T) {
	origin := startServer(t)
	for _, args := range [][]string{{"serve", "-v"}, {"relay", "-v", "--upstream", origin.http, "--resource", "pods"}} {
		t.Run(args[0], func(t *testing.T) {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0], append(args, "--addr", "127.0.0.1:0")...)
			cmd.Env = append(os.Environ(), asProgramEnv+"=1")
			cmd.Stdout, cmd.Stderr = write, write
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			write.Close()
			lines := bufio.NewScanner(read)
			url := ""
			for url == "" && lines.Scan() {
				if _, after, ok := strings.Cut(lines.Text(), "ing on "); ok {
					url, _, _ = strings.Cut(after, " ")
				}
			}
			for lines.Scan() && !strings.Contains(lines.Text(), "/readyz") &&
				!strings.Contains(lines.Text(), "--transport") {
			}
			read.Close()
			if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			for range 3 { // the server logs each request
				res, err := http.Get(url + "/nothing")
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
			}
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Errorf("the server ended with %v, want exit code 0", err)
			}
		})
	}
}

// A server that was stopped for longer than the TTL ends no object that was renewed before.
func TestStoppedServerEndsNoRenewedObject(t *testing.T) {
	t.Parallel() // slow, because the server is stopped
	p := startProcess(t, nil, "serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "test.db"),
		"--ttl", "pods=4s")
	url := p.awaitURL(t) + podsPath
	names := []string{"a", "b", "c"}
	for _, name := range names {
		create(t, strings.TrimSuffix(url, podsPath), podsPath, name)
	}
	renew := func(want int) {
		for _, name := range names {
			code, _, body := request(t, http.MethodPatch, url+"/"+name, `{}`,
				"Content-Type", "application/merge-patch+json")
			if code != want {
				t.Errorf("renewal of %s: got %d %s, want %d", name, code, body, want)
			}
		}
	}
	renew(http.StatusOK)
	for _, s := range []struct {
		signal os.Signal
		wait   time.Duration
	}{{syscall.SIGSTOP, 10 * time.Second}, {syscall.SIGCONT, 500 * time.Millisecond}} {
		if err := p.cmd.Process.Signal(s.signal); err != nil {
			t.Fatal(err)
		}
		<-time.After(s.wait)
	}
	renew(http.StatusOK)
	<-time.After(7 * time.Second)
	renew(http.StatusNotFound)
}
