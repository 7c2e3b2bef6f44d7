package http2

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	"github.com/listwatch/listwatch/transport/h2"
)

// A client sends exchanges to a server, and returns the results by the name of the exchange.
type client struct {
	name string
	// shift reduces the size of large bodies to the fraction 1 >> shift, for clients that are slow.
	shift uint
	run   func(t *testing.T, s *server, all []exchange) map[string]result
}

var clients = []client{
	{"net/http", 0, func(t *testing.T, s *server, all []exchange) map[string]result {
		return runGo(t, newTransport(t, s), s.URL(""), all)
	}},
	{"ReverseProxy", 0, runBehindProxy},
	{"grpc-go", 0, runGRPC},
	{"curl", 0, runCurl},
	{"h2load", 0, runH2load},
	{"Node.js", 0, func(t *testing.T, s *server, all []exchange) map[string]result {
		return runScript(t, all, program(t, "node"), "testdata/client.mjs", s.URL(""))
	}},
	{"Python's h2", 0, func(t *testing.T, s *server, all []exchange) map[string]result {
		if exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import h2").Run() != nil {
			testapi.SkipMissing(t, "h2 for Python is not installed (python3-h2)")
		}
		return runScript(t, all, "/usr/bin/python3", "testdata/client.py", s.URL(""))
	}},
	{"Chromium", 3, runChromium},
}

func program(t *testing.T, name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		testapi.SkipMissing(t, "%s is not installed", name)
	}
	return path
}

func newTransport(t *testing.T, s *server) *http.Transport {
	tr := &http.Transport{
		TLSClientConfig: s.ClientTLS, ForceAttemptHTTP2: true, DisableCompression: true,
		ExpectContinueTimeout: time.Minute,
	}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func runGo(t *testing.T, tr http.RoundTripper, base string, all []exchange) map[string]result {
	results := map[string]result{}
	for _, e := range all {
		results[e.Name] = sendGo(t, tr, base, e)
	}
	return results
}

func sendGo(t *testing.T, tr http.RoundTripper, base string, e exchange) (r result) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Duration(e.Body+e.length)*100)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(status int,
			_ textproto.MIMEHeader,
		) error {
			r.Early = append(r.Early, status)
			return nil
		},
	})
	req, err := http.NewRequestWithContext(ctx, e.Method, base+e.Path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range e.Header {
		req.Header.Set(name, v)
	}
	if e.Body > 0 {
		if req.Body, req.ContentLength = io.NopCloser(pattern(e.Body)), e.Body; e.Stream {
			req.ContentLength = -1
		}
	}
	if e.Trailer {
		req.Trailer, req.ContentLength = http.Header{"Sum": {"42"}}, -1
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		r.Error = err.Error()
		r.Sum = sumOf(0)
		return r
	}
	defer resp.Body.Close()
	sum := newSum()
	if r.Length, err = io.Copy(sum, resp.Body); err != nil {
		r.Error = err.Error()
	}
	r.Status, r.Sum, r.Header, r.Trailer = resp.StatusCode, sum.text(), flat(resp.Header), flat(resp.Trailer)
	return r
}

// flat returns h without the date, with lower case names.
func flat(h http.Header) map[string]string {
	m := map[string]string{}
	for name, v := range h {
		if name != "Date" {
			m[strings.ToLower(name)] = strings.Join(v, ", ")
		}
	}
	return m
}

// runBehindProxy sends the exchanges through a ReverseProxy. The proxy runs on our server, and uses
// net/http's client.
func runBehindProxy(t *testing.T, s *server, all []exchange) map[string]result {
	front := &server{Server: testhttp.Start(t, reverseProxy(t, s.URL(""), newTransport(t, s)), testhttp.Options{
		TLS: true, Sockets: true, Configure: func(hs *http.Server) { h2.Configure(hs, h2.Config{}) },
	})}
	return runGo(t, newTransport(t, front), front.URL(""), all)
}

// clientTime limits the time of a client that is a program. Only failing tests take that long.
const clientTime = 5 * time.Minute

// runScript runs a program that reads the exchanges from its standard input, and prints a line with
// a name and a result for each of them.
func runScript(t *testing.T, all []exchange, program string, args ...string) map[string]result {
	ctx, cancel := context.WithTimeout(t.Context(), clientTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	input, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, &stderr)
	}
	results := map[string]result{}
	for line := range bytes.Lines(out) {
		decode(t, line, results)
	}
	return results
}

func decode(t *testing.T, line []byte, results map[string]result) {
	var named struct {
		Name string `json:"name"`
		result
	}
	if err := json.Unmarshal(line, &named); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	delete(named.Header, "date")
	results[named.Name] = named.result
}

func runCurl(t *testing.T, s *server, all []exchange) map[string]result {
	curl, dir := program(t, "curl"), t.TempDir()
	head, body, input := filepath.Join(dir, "head"), filepath.Join(dir, "body"), filepath.Join(dir, "input")
	results := map[string]result{}
	for _, e := range all {
		args := []string{
			"--silent", "--show-error", "--insecure", "--http2", "--dump-header", head, "--output", body,
			s.URL(e.Path),
		}
		for name, v := range e.Header {
			args = append(args, "--header", name+": "+v)
		}
		switch {
		case e.Method == "HEAD":
			args = append(args, "--head")
		case e.Body > 0:
			if f, err := os.Create(input); err != nil {
				t.Fatal(err)
			} else if _, err = io.Copy(f, pattern(e.Body)); err != nil || f.Close() != nil {
				t.Fatal(err)
			}
			args = append(args, "--upload-file", input)
			fallthrough
		default:
			args = append(args, "--request", e.Method)
		}
		os.Remove(body) // curl creates no file without a body
		var r result
		if out, err := exec.CommandContext(t.Context(), curl, args...).CombinedOutput(); err != nil {
			r.Error = strings.TrimSpace(string(out))
		}
		sum := newSum()
		if f, err := os.Open(body); err == nil {
			if e.Method != "HEAD" { // curl writes the head
				r.Length, _ = io.Copy(sum, f)
			}
			f.Close()
		}
		r.Sum = sum.text()
		r.parseHead(t, head)
		results[e.Name] = r
	}
	return results
}

// parseHead reads the heads and the trailers that curl has written to file.
func (r *result) parseHead(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := textproto.NewReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		line, err := in.ReadLine()
		if err != nil {
			return
		}
		status, isHead := strings.CutPrefix(line, "HTTP/2 ")
		if !isHead { // the first trailer
			in = textproto.NewReader(
				bufio.NewReader(io.MultiReader(strings.NewReader(line+"\r\n"), in.R, strings.NewReader("\r\n"))))
		}
		fields, err := in.ReadMIMEHeader()
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("%v: %q", err, text)
		}
		switch n, _ := strconv.Atoi(strings.TrimSpace(status)); {
		case !isHead:
			r.Trailer = flat(http.Header(fields))
		case n < 200:
			r.Early = append(r.Early, n)
		default:
			r.Status, r.Header = n, flat(http.Header(fields))
		}
	}
}

// runH2load sends many requests at once. The results have no headers.
func runH2load(t *testing.T, s *server, _ []exchange) map[string]result {
	h2load := program(t, "h2load")
	input := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(input, periods[:10_000], 0o644); err != nil {
		t.Fatal(err)
	}
	results := map[string]result{}
	for name, args := range map[string][]string{
		"many GETs":            {"-n", "10000", s.URL("/download?n=1000")},
		"many early responses": {"-n", "10000", "-d", input, s.URL("/early")},
		"many uploads":         {"-n", "5000", "-d", input, s.URL("/upload")},
		"many echoes":          {"-n", "5000", "-d", input, s.URL("/echo")},
		"many hints":           {"-n", "5000", s.URL("/hints")},
		"large downloads":      {"-n", "100", s.URL("/download?n=1000000")},
		"many aborts":          {"-n", "500", s.URL("/abort")},
		"through a proxy":      {"-n", "2000", "-d", input, s.URL("/proxy/echo")},
	} {
		out, err := exec.CommandContext(t.Context(), h2load,
			append([]string{"-c", "4", "-m", "50"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var r result
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "requests:") || strings.HasPrefix(line, "status codes:") {
				r.Error += line
			}
			if _, data, ok := strings.Cut(line, "(space savings"); ok {
				_, data, _ = strings.Cut(data, "), ")
				if _, err := fmt.Sscanf(data[strings.Index(data, "(")+1:], "%d", &r.Length); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
			}
		}
		results[name] = r
	}
	return results
}

// runChromium opens a page that sends the exchanges with fetch. Pages cannot send some of them.
func runChromium(t *testing.T, s *server, all []exchange) map[string]result {
	page, err := os.ReadFile("testdata/client.html")
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan []byte, 1)
	s.mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { w.Write(page) })
	s.mux.HandleFunc("/exchanges", func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(all) })
	s.mux.HandleFunc("/shown", func(_ http.ResponseWriter, r *http.Request) {
		line, _ := io.ReadAll(r.Body) // decode reports what is missing
		shown <- line
	})
	ctx, cancel := context.WithTimeout(t.Context(), clientTime)
	defer cancel()
	browsertest.Open(ctx, t, s.URL("/page"), "--ignore-certificate-errors")
	results := map[string]result{}
	for range all {
		select {
		case line := <-shown:
			decode(t, line, results)
		case <-ctx.Done():
			t.Fatalf("got the results %v only", results)
		}
	}
	return results
}
