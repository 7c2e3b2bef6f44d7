package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/internal/ports"
)

func TestBodyBeyondMaxBodyBytesGets413(t *testing.T) {
	s := startServer(t, "--max-body-bytes", "1000B", "--debug-addr", "127.0.0.1:0")
	// The response must not have Retry-After, because a retry would fail, too.
	if code, header, body := request(t, "POST", s.http+podsPath,
		largePod("large", 1000)); code != http.StatusRequestEntityTooLarge || header.Get("Retry-After") != "" {
		t.Errorf("got %d %s, want 413 without Retry-After", code, body)
	}
	if metrics := requireStatus(t, 200, "GET", s.debug+"/metrics"); !strings.Contains(metrics,
		`listwatch_requests_refused_total{code="413",reason="body_bytes"} 1`) {
		t.Error("the metrics do not have the refusal")
	}
	create(t, s.http, podsPath, "small")
}

func TestIdleTimeoutClosesConnections(t *testing.T) {
	s := startServer(t, "--idle-timeout", "300ms")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.http, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begin := time.Now()
	fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
	_ = conn.SetReadDeadline(begin.Add(time.Minute))
	response, err := io.ReadAll(conn)
	if took := time.Since(begin); err != nil || !strings.Contains(string(response), "200 OK") ||
		took < 300*time.Millisecond {
		t.Errorf("got %q, %v and the end after %v, want a response and the end after 300 ms", response, err, took)
	}
}

func TestWriteTimeoutDisconnectsStalledClient(t *testing.T) {
	s := startServer(t, "--write-timeout", "100ms", "--debug-addr", "127.0.0.1:0")
	// This watch receives little, so that it is never slow, not even on a busy machine.
	innocent, err := http.Get(s.http + podsPath + "?watch=true&fieldSelector=metadata.name%3Dafter")
	if err != nil {
		t.Fatal(err)
	}
	defer innocent.Body.Close()
	read := make(chan bool)
	go func() {
		defer close(read)
		lines := bufio.NewScanner(innocent.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if strings.Contains(lines.Text(), `"name":"after"`) {
				read <- true
				return
			}
		}
	}()
	stalledWatch(t, s)
	s.stderr.await(t, "the end of the watch", s.ended, func(text string) bool {
		return strings.Contains(text, `msg="watch ended"`) && strings.Contains(text, `reason="too slow"`)
	})
	create(t, s.http, podsPath, "after")
	if !<-read {
		t.Error("the watch of a client that reads did not continue")
	}
	if metrics := requireStatus(t, 200, "GET", s.debug+"/metrics"); !strings.Contains(metrics,
		`listwatch_watches_ended_total{reason="too_slow",transport="chunked"} 1`) {
		t.Error("the metrics do not have the end of the stalled watch")
	}
}

func TestShutdownTimeoutCutsStalledClient(t *testing.T) {
	s := startServer(t, "--shutdown-timeout", "100ms", "--write-timeout", "1h")
	stalledWatch(t, s)
	s.interrupt()
	if code := s.exit(t); code != cli.ExitOK ||
		!strings.Contains(s.stderr.String(), "some watches did not end in time and were closed\" after=100ms") {
		t.Errorf("exit code %d, want 0 after 100 ms; stderr:\n%s", code, s.stderr)
	}
}

func TestDrainSpreadAppliesToShutdown(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	s := startServer(t, "--drain-spread", "10s")
	for range 8 {
		res, err := http.Get(s.http + "/api/v1/pods?watch=true")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close() // ends the watches that the test does not wait for
	}
	s.interrupt()
	s.stderr.await(t, "that watches ended at different times", s.ended, func(text string) bool {
		var first, last time.Time
		for line := range strings.Lines(text) {
			_, rest, _ := strings.Cut(line, "time=")
			word, _, _ := strings.Cut(rest, " ")
			at, err := time.Parse(time.RFC3339Nano, word)
			if err != nil || !strings.Contains(line, `msg="watch ended"`) {
				continue
			}
			if last = at; first.IsZero() {
				first = at
			}
		}
		return last.Sub(first) > 50*time.Millisecond
	})
}

// largePod returns a pod with an annotation of size bytes.
func largePod(name string, size int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"x":%q}}}`, name, strings.Repeat("x", size))
}

// stalledWatch opens a watch of more objects than the buffers of the connection can hold, and reads
// only the header of the response.
func stalledWatch(t *testing.T, s *runningServer) {
	t.Helper()
	for i := range 5 {
		if code, _, body := request(t, "POST", s.http+podsPath,
			largePod(fmt.Sprint("pod-", i), 200<<10)); code != http.StatusCreated {
			t.Fatalf("create: got %d %s, want 201", code, body)
		}
	}
	c := dialWithSmallBuffer(t, s)
	fmt.Fprint(c, "GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v, want status 200", res, err)
	}
}

// dialWithSmallBuffer opens a connection whose buffers hold less than 100 KiB until the client
// reads. The kernel sizes the send buffer of the server by the length of segments. So the client
// asks for small segments, because on a loopback connection they would have 64 KiB.
func dialWithSmallBuffer(t *testing.T, s *runningServer) *net.TCPConn {
	t.Helper()
	d := net.Dialer{Control: limitSegments}
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.http, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	tcp := c.(*net.TCPConn)
	if err := tcp.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	return tcp
}

func TestMemoryLimitsTheRuntime(t *testing.T) {
	for _, c := range []struct{ environment, memory, watches, want string }{
		{"", "1GiB", "0", "1.932735276e+09"},
		{"", "1GiB", "200000", "3.915487638e+09"},
		{"", "16MiB", "0", "1.34217728e+08"}, // the minimum that the program needs
		{"", "1GiB", "-1", "9.223372036854776e+18"},
		{"", "-1", "0", "9.223372036854776e+18"},
		{"300MiB", "1GiB", "0", "3.145728e+08"},
	} {
		t.Run(c.environment+c.memory+c.watches, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", c.environment)
			debug := ports.Address(t)
			startProcess(t, nil, "serve", "--addr", "127.0.0.1:0", "--debug-addr", debug, "--memory", c.memory,
				"--max-watches", c.watches).awaitURL(t)
			metrics := requireStatus(t, 200, "GET", "http://"+debug+"/metrics")
			if _, got, _ := strings.Cut(metrics, "\ngo_gc_gomemlimit_bytes "); !strings.HasPrefix(got, c.want+"\n") {
				t.Errorf("got a limit of %.30q, want %s", got, c.want)
			}
		})
	}
}
