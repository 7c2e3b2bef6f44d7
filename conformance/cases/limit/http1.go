package limit

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
)

// An attack is a request that two parsers may read in two ways, so that one of them takes what is behind it for another request.
type attack struct {
	what, lines, body string
	// also is an answer that is allowed beside 400: 200 where the server may make sense of it. stays: then it need not close.
	also  int
	stays bool
}

// attacks are those of RFC 9112, sections 2.2, 3.2, 5.1, 5.2, 6.1 and 6.3.
var attacks = []attack{
	{what: "Content-Length and Transfer-Encoding", lines: "Content-Length: 6\r\nTransfer-Encoding: chunked", body: "0\r\n\r\n", also: 200},
	{what: "Transfer-Encoding and Content-Length", lines: "Transfer-Encoding: chunked\r\nContent-Length: 5", body: "0\r\n\r\n", also: 200},
	{what: "two lengths", lines: "Content-Length: 5\r\nContent-Length: 6", body: "01234"},
	{what: "a list of lengths", lines: "Content-Length: 5, 6", body: "01234"},
	{what: "a length with a sign", lines: "Content-Length: +5", body: "01234"},
	{what: "a negative length", lines: "Content-Length: -1"},
	{what: "a length in base 16", lines: "Content-Length: 0x5", body: "01234"},
	{what: "a length that overflows", lines: "Content-Length: 18446744073709551621", body: "01234"},
	{what: "an encoding that is not the last", lines: "Transfer-Encoding: chunked, identity", body: "0\r\n\r\n", also: 501},
	{what: "an unknown encoding", lines: "Transfer-Encoding: xchunked", body: "0\r\n\r\n", also: 501},
	{what: "an encoding twice", lines: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", body: "0\r\n\r\n", also: 501},
	{what: "space before a colon", lines: "Transfer-Encoding : chunked", body: "0\r\n\r\n"},
	{what: "a name with space", lines: "Transfer Encoding: chunked", body: "0\r\n\r\n"},
	{what: "a folded line", lines: "X-Folded: a\r\n b", also: 200, stays: true},
	{what: "a folded encoding", lines: "Content-Length: 5\r\nTransfer-Encoding:\r\n chunked", body: "0\r\n\r\n", also: 200},
	{what: "a bare CR", lines: "X-Bare: a\rTransfer-Encoding: chunked", also: 200, stays: true},
	{what: "a NUL", lines: "X-Nul: a\x00b", also: 200, stays: true},
	{what: "a chunk whose size overflows", lines: "Transfer-Encoding: chunked", body: "10000000000000000\r\n", also: 200},
	{what: "a second host", lines: "Host: elsewhere.example"},
}

func smuggling(e *harness.Env) {
	for _, a := range attacks {
		head := "GET " + e.URL.EscapedPath() + "?limit=1 HTTP/1.1\r\nHost: " + e.URL.Host + "\r\n" + fields(e) + a.lines + "\r\n\r\n"
		smuggles(e, a, head+a.body)
	}
	first := "GET " + e.URL.EscapedPath() + "?limit=1 HTTP/1.1\r"
	smuggles(e, attack{what: "a bare CR in the first line"}, first+"X: y\r\nHost: "+e.URL.Host+"\r\n\r\n")
	smuggles(e, attack{what: "space before the first field"}, first+"\n Host: "+e.URL.Host+"\r\n\r\n")
	smuggles(e, attack{what: "no host"}, first+"\n\r\n")
	alive(e)
}

// fields are those that go with every request, as lines.
func fields(e *harness.Env) string {
	var text strings.Builder
	all := harness.HeaderPairs(e.Header)
	for i := 0; i < len(all); i += 2 {
		fmt.Fprintf(&text, "%s: %s\r\n", all[i], all[i+1])
	}
	return text.String()
}

// smuggles sends an attack and a request behind it, which must not be answered.
func smuggles(e *harness.Env, a attack, text string) {
	e.Helper()
	behind := "GET " + e.URL.EscapedPath() + "?limit=1 HTTP/1.1\r\nHost: " + e.URL.Host + "\r\n" + fields(e) + "Connection: close\r\n\r\n"
	c := e.Connect(e.ALPN()...)
	_, _ = io.WriteString(c, text+behind) // it may be closed by now
	answers, err := readAnswers(c)
	switch {
	case harness.IsTimeout(err):
		e.Errorf("%s: got %d and the connection stays open, want it closed", a.what, answers)
	case len(answers) == 0:
		e.Errorf("%s: got no answer, %v; want 400", a.what, err)
	case answers[0] != http.StatusBadRequest && answers[0] != a.also:
		e.Errorf("%s: got %d, want 400", a.what, answers)
	case len(answers) > 1 && !(a.stays && answers[0] == a.also):
		e.Errorf("%s: got answers %d on one connection, want it closed behind the first", a.what, answers)
	}
}

// readAnswers reads responses up to the end of the connection, and returns their status.
func readAnswers(c net.Conn) (status []int, err error) {
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			return status, err
		}
		status = append(status, r.StatusCode)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return status, err
		}
	}
}

// alive says that the server answers a sound request.
func alive(e *harness.Env) {
	e.Helper()
	e.ListRaw("limit=1").WantStatus(http.StatusOK)
}

func h1HeaderBytes(e *harness.Env) {
	const size = 1<<20 + 64<<10 // a server's limit may be 1 MiB and a little more
	line := "X-Many: " + strings.Repeat("a", 1<<10) + "\r\n"
	for what, fields := range map[string]string{
		"one field":   "X-One: " + strings.Repeat("a", size) + "\r\n",
		"many fields": strings.Repeat(line, size/len(line)+1),
	} {
		c := e.Connect(e.ALPN()...)
		go func() { // until c is closed
			_, _ = io.WriteString(c, "GET "+e.URL.EscapedPath()+"?limit=1 HTTP/1.1\r\nHost: "+e.URL.Host+"\r\n"+fields+"\r\n")
		}()
		answers, err := readAnswers(c)
		if len(answers) != 1 || answers[0] != http.StatusRequestHeaderFieldsTooLarge {
			e.Errorf("%s of 1 MiB: got answers %d, %v; want 431", what, answers, err)
		}
		c.Close()
	}
	alive(e)
}

func uriLong(e *harness.Env) {
	const size = 20_000
	a := e.WatchRaw(harness.LabelSelector("app=" + strings.Repeat("a", size)))
	if a.Status < 400 || a.Status > 499 {
		e.Errorf("got status %d, want an error of the client's", a.Status)
	}
	alive(e)
}

// mostHeaderTime is how long a client may take for the head of a request.
const mostHeaderTime = time.Minute

func slowloris(e *harness.Env) {
	s := e.Dial(harness.From(e.Put("a")))
	start := "GET " + e.URL.EscapedPath() + " HTTP/1.1\r\n"
	for what, text := range map[string]string{
		"the first line":      "GET /" + strings.Repeat("a", 1<<10),
		"the name of a field": start + strings.Repeat("X", 1<<10),
		"a value":             start + "X-Slow: " + strings.Repeat("a", 1<<10),
		"one field a time":    start + strings.Repeat("A: b\r\n", 1<<8),
		"nothing at all":      "",
	} {
		if took := drips(e, text); took > mostHeaderTime {
			e.Errorf("%s in drips: the connection was open for %v, want no more than %v", what, took, mostHeaderTime)
		}
	}
	e.Put("a")
	s.Want("MODIFIED a")
}

// drips writes a byte a second until the server closes the connection, which must happen within twice the time it has. It returns how long
// it took.
func drips(e *harness.Env, text string) time.Duration {
	c := e.Connect(e.ALPN()...)
	defer c.Close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, c)
	}()
	begin := time.Now()
	for i := 0; time.Since(begin) < 2*mostHeaderTime; i++ {
		if i < len(text) {
			_, _ = io.WriteString(c, text[i:i+1]) // it may be closed by now
		}
		select {
		case <-closed:
			return time.Since(begin)
		case <-time.After(time.Second):
		}
	}
	return time.Since(begin)
}
