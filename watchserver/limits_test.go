package watchserver_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Conformance case limit/smuggling. A proxy that uses Content-Length would treat the bytes
// after the chunks as the end of the body.
func TestAChunkedRequestClosesTheConnection(t *testing.T) {
	for _, fields := range []string{"", "Content-Length: 6\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, nil)
			conn, err := f.Dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			second := "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
			io.WriteString(conn,
				"GET / HTTP/1.1\r\nHost: x\r\n"+fields+"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+second)
			responses, err := io.ReadAll(conn)
			n := strings.Count(string(responses), "HTTP/1.1 200 OK")
			if err != nil || n != 1 || !strings.Contains(string(responses), "\r\nConnection: close\r\n") {
				t.Errorf("%q: got %q, %v; want one response that closes the connection", fields, responses, err)
			}
		})
	}
}
