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

// An attack is an ambiguous request. Two parsers may disagree about where it ends, so that one of
// them reads a part of its body as another request.
type attack struct {
	name, headers, body string
	// alsoAllowed is a status that is allowed in addition to 400. If mayStayOpen is true, a server
	// that responds with that status may keep the connection open.
	alsoAllowed int
	mayStayOpen bool
}

// attacks are the ambiguous requests of RFC 9112, sections 2.2, 3.2, 5.1, 5.2, 6.1 and 6.3.
var attacks = []attack{
	{
		name: "Content-Length and Transfer-Encoding", headers: "Content-Length: 6\r\nTransfer-Encoding: chunked",
		body: "0\r\n\r\n", alsoAllowed: 200,
	},
	{
		name: "Transfer-Encoding and Content-Length", headers: "Transfer-Encoding: chunked\r\nContent-Length: 5",
		body: "0\r\n\r\n", alsoAllowed: 200,
	},
	{name: "two lengths", headers: "Content-Length: 5\r\nContent-Length: 6", body: "01234"},
	{name: "a list of lengths", headers: "Content-Length: 5, 6", body: "01234"},
	{name: "a length with a sign", headers: "Content-Length: +5", body: "01234"},
	{name: "a negative length", headers: "Content-Length: -1"},
	{name: "a length in base 16", headers: "Content-Length: 0x5", body: "01234"},
	{name: "a length that overflows", headers: "Content-Length: 18446744073709551621", body: "01234"},
	{
		name: "an encoding that is not the last", headers: "Transfer-Encoding: chunked, identity",
		body: "0\r\n\r\n", alsoAllowed: 501,
	},
	{name: "an unknown encoding", headers: "Transfer-Encoding: xchunked", body: "0\r\n\r\n", alsoAllowed: 501},
	{
		name: "an encoding twice", headers: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
		body: "0\r\n\r\n", alsoAllowed: 501,
	},
	{name: "space before a colon", headers: "Transfer-Encoding : chunked", body: "0\r\n\r\n"},
	{name: "a name with space", headers: "Transfer Encoding: chunked", body: "0\r\n\r\n"},
	{name: "a folded line", headers: "X-Folded: a\r\n b", alsoAllowed: 200, mayStayOpen: true},
	{
		name: "a folded encoding", headers: "Content-Length: 5\r\nTransfer-Encoding:\r\n chunked",
		body: "0\r\n\r\n", alsoAllowed: 200,
	},
	{name: "a bare CR", headers: "X-Bare: a\rTransfer-Encoding: chunked", alsoAllowed: 200, mayStayOpen: true},
	{name: "a NUL", headers: "X-Nul: a\x00b", alsoAllowed: 200, mayStayOpen: true},
	{
		name: "a chunk whose size overflows", headers: "Transfer-Encoding: chunked",
		body: "10000000000000000\r\n", alsoAllowed: 200,
	},
	{name: "a second host", headers: "Host: elsewhere.example"},
}

func smuggling(e *harness.Env) {
	for _, a := range attacks {
		head := "GET " + e.URL.EscapedPath() + "?limit=1 HTTP/1.1\r\nHost: " + e.URL.Host + "\r\n" +
			requiredHeaders(e) + a.headers + "\r\n\r\n"
		checkAttack(e, a, head+a.body)
	}
	requestLine := "GET " + e.URL.EscapedPath() + "?limit=1 HTTP/1.1\r"
	checkAttack(e, attack{name: "a bare CR in the first line"}, requestLine+"X: y\r\nHost: "+e.URL.Host+"\r\n\r\n")
	checkAttack(e, attack{name: "space before the first field"}, requestLine+"\n Host: "+e.URL.Host+"\r\n\r\n")
	checkAttack(e, attack{name: "no host"}, requestLine+"\n\r\n")
	checkAlive(e)
}

// requiredHeaders returns the header fields that every request to the target needs, as lines.
func requiredHeaders(e *harness.Env) string {
	var text strings.Builder
	all := harness.HeaderPairs(e.Header)
	for i := 0; i < len(all); i += 2 {
		fmt.Fprintf(&text, "%s: %s\r\n", all[i], all[i+1])
	}
	return text.String()
}

// checkAttack sends an attack, followed by a second request. The server must respond to the attack
// with a status that is allowed for it, and must not respond to the second request unless
// a.mayStayOpen is true.
func checkAttack(e *harness.Env, a attack, text string) {
	e.Helper()
	second := "GET " + e.URL.EscapedPath() + "?limit=1 HTTP/1.1\r\nHost: " + e.URL.Host + "\r\n" + requiredHeaders(e) +
		"Connection: close\r\n\r\n"
	c := e.Connect(e.ALPN()...)
	_, _ = io.WriteString(c, text+second) // the server may have closed the connection
	statuses, err := readStatuses(c)
	switch {
	case harness.IsTimeout(err):
		e.Errorf("%s: got statuses %d on a connection that stays open, want the server to close it", a.name, statuses)
	case len(statuses) == 0:
		e.Errorf("%s: got no response, %v; want status 400", a.name, err)
	case statuses[0] != http.StatusBadRequest && statuses[0] != a.alsoAllowed:
		e.Errorf("%s: got statuses %d, want 400", a.name, statuses)
	case len(statuses) > 1 && !(a.mayStayOpen && statuses[0] == a.alsoAllowed):
		e.Errorf("%s: got statuses %d on one connection, want the server to close it after the first response", a.name,
			statuses)
	}
}

// readStatuses reads responses until the connection ends, and returns their statuses.
func readStatuses(c net.Conn) (status []int, err error) {
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

// checkAlive checks that the server still responds to a valid request.
func checkAlive(e *harness.Env) {
	e.Helper()
	e.ListRaw("limit=1").WantStatus(http.StatusOK)
}

func h1HeaderBytes(e *harness.Env) {
	const size = 1<<20 + 64<<10 // more than 1 MiB, because a server's limit may be slightly higher
	line := "X-Many: " + strings.Repeat("a", 1<<10) + "\r\n"
	for name, fields := range map[string]string{
		"one field":   "X-One: " + strings.Repeat("a", size) + "\r\n",
		"many fields": strings.Repeat(line, size/len(line)+1),
	} {
		c := e.Connect(e.ALPN()...)
		go func() { // ends when c is closed
			_, _ = io.WriteString(c,
				"GET "+e.URL.EscapedPath()+"?limit=1 HTTP/1.1\r\nHost: "+e.URL.Host+"\r\n"+fields+"\r\n")
		}()
		statuses, err := readStatuses(c)
		if len(statuses) != 1 || statuses[0] != http.StatusRequestHeaderFieldsTooLarge {
			e.Errorf("%s of 1 MiB: got statuses %d, %v; want 431", name, statuses, err)
		}
		c.Close()
	}
	checkAlive(e)
}

func uriLong(e *harness.Env) {
	const size = 20_000
	a := e.WatchRaw(harness.LabelSelector("app=" + strings.Repeat("a", size)))
	if a.Status < 400 || a.Status > 499 {
		e.Errorf("got status %d, want a 4xx status", a.Status)
	}
	checkAlive(e)
}

// maxHeaderTime is the time after which a server must close a connection on which it has
// not received all headers of a request.
const maxHeaderTime = time.Minute

func slowloris(e *harness.Env) {
	s := e.Dial(harness.From(e.Put("a")))
	start := "GET " + e.URL.EscapedPath() + " HTTP/1.1\r\n"
	for name, text := range map[string]string{
		"the first line":    "GET /" + strings.Repeat("a", 1<<10),
		"a field name":      start + strings.Repeat("X", 1<<10),
		"a field value":     start + "X-Slow: " + strings.Repeat("a", 1<<10),
		"many short fields": start + strings.Repeat("A: b\r\n", 1<<8),
		"nothing at all":    "",
	} {
		if open := sendSlowly(e, text); open > maxHeaderTime {
			e.Errorf("%s, sent slowly: the connection was open for %v, want at most %v", name, open, maxHeaderTime)
		}
	}
	e.Put("a")
	s.Want("MODIFIED a")
}

// sendSlowly sends text at one byte per second and then waits. It stops when the server closes the
// connection or twice maxHeaderTime has passed. It returns the elapsed time.
func sendSlowly(e *harness.Env, text string) time.Duration {
	c := e.Connect(e.ALPN()...)
	defer c.Close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, c)
	}()
	begin := time.Now()
	for i := 0; time.Since(begin) < 2*maxHeaderTime; i++ {
		if i < len(text) {
			_, _ = io.WriteString(c, text[i:i+1]) // the server may have closed the connection
		}
		select {
		case <-closed:
			return time.Since(begin)
		case <-time.After(time.Second):
		}
	}
	return time.Since(begin)
}
