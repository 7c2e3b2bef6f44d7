package http2

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/testapi"
)

// uploadSeconds is the time that a client waits for a response.
const uploadSeconds = "20"

// An upload is a request that the server refuses with the status without reading the whole body.
type upload struct{ status, size int }

func refusedUploads() (all []upload) {
	for _, status := range []int{401, 404, 413, 415, 429} {
		for _, size := range []int{20_000, 70_000, 200_000, 900_000, 2_000_000} {
			all = append(all, upload{status, size})
		}
	}
	return all
}

// refuse refuses an upload, with 413 after a part of it has been read.
func refuse(w http.ResponseWriter, r *http.Request) {
	status, err := strconv.Atoi(r.PathValue("status"))
	if err != nil {
		status = http.StatusInternalServerError
	}
	if status == http.StatusRequestEntityTooLarge {
		_, _ = http.MaxBytesReader(w, r.Body, 1000).Read(make([]byte, 2000))
	}
	http.Error(w, "refused", status)
}

// uploaders send the uploads, each to its URL, and return a line with the version and the status of
// each response.
var uploaders = map[string]func(t *testing.T, urls []string, all []upload) []string{
	"Java": func(t *testing.T, urls []string, all []upload) []string {
		return runUploads(t, urls, all, program(t, "java"), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
			"testdata/Uploads.java")
	},
	"httpx": func(t *testing.T, urls []string, all []upload) []string {
		if exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import h2, httpx").Run() != nil {
			testapi.SkipMissing(t, "httpx or h2 for Python is not installed (python3-httpx, python3-h2)")
		}
		return runUploads(t, urls, all, "/usr/bin/python3", "testdata/uploads.py")
	},
	"curl": curlUploads,
}

// runUploads runs a program that sends all uploads over one connection.
func runUploads(t *testing.T, urls []string, all []upload, program string, args ...string) []string {
	ctx, cancel := context.WithTimeout(t.Context(), clientTime)
	defer cancel()
	args = append(args, uploadSeconds)
	for i, u := range all {
		args = append(args, urls[i], strconv.Itoa(u.size))
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, &stderr)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func curlUploads(t *testing.T, urls []string, all []upload) (lines []string) {
	curl, input := program(t, "curl"), filepath.Join(t.TempDir(), "input")
	for i, u := range all {
		if err := os.WriteFile(input, make([]byte, u.size), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), curl, "--silent", "--show-error", "--insecure", "--http2",
			"--max-time", uploadSeconds,
			"--output", os.DevNull, "--write-out", "HTTP/%{http_version} %{http_code}", "--data-binary", "@"+input,
			urls[i]).CombinedOutput()
		if line := string(out); err == nil {
			lines = append(lines, line)
		} else {
			lines = append(lines, err.Error()+": "+line)
		}
	}
	return lines
}

// Some clients wait until they may send the rest of a body before they look at the response.
func TestClientsGetTheStatusOfRefusedUploads(t *testing.T) {
	for name, send := range uploaders {
		t.Run(name, func(t *testing.T) {
			s := start(t, false)
			s.mux.HandleFunc("/refuse/{status}", refuse)
			all := refusedUploads()
			var urls []string
			for _, u := range all {
				urls = append(urls, s.URL(fmt.Sprint("/refuse/", u.status)))
			}
			begin := time.Now()
			lines := send(t, urls, all)
			t.Logf("%d uploads took %v", len(all), time.Since(begin).Round(time.Millisecond))
			if len(lines) != len(all) {
				t.Fatalf("got %d lines, want %d: %q", len(lines), len(all), lines)
			}
			for i, u := range all {
				// httpx writes HTTP/2.0.
				status := strconv.Itoa(u.status)
				if want := []string{"HTTP/2 " + status, "HTTP/2.0 " + status}; !slices.Contains(want, lines[i]) {
					t.Errorf("%d bytes: got %q, want one of %q", u.size, lines[i], want)
				}
			}
		})
	}
}
