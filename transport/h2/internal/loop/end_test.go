package loop

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/h2peer"
	"github.com/listwatch/listwatch/internal/memnet"
)

// A probe is a connection and a log that call a function whenever they are used, for any of which
// the connection loop may have to wait.
type probe struct {
	net.Conn
	called func(what string)
}

func (p *probe) Write(b []byte) (int, error) {
	p.called("write")
	return p.Conn.Write(b)
}

// CloseWrite stands for the alert of TLS.
func (p *probe) CloseWrite() error {
	p.called("close")
	return nil
}

func TestMutexIsFreeDuringIO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := memnet.Pipe()
		var c *conn
		calls := make(chan string, 100)
		called := func(what string) {
			c.mu.Lock() // deadlocks if the caller holds the mutex
			defer c.mu.Unlock()
			calls <- what
		}
		hs := &http.Server{ErrorLog: log.New(writerFunc(func(p []byte) (int, error) {
			called("log")
			return len(p), nil
		}), "", 0)}
		handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("for the log") })
		c = newConn(hs, &probe{server, called}, &tls.ConnectionState{Version: tls.VersionTLS13}, handler, Options{})
		go new(Server).run(t.Context(), c)
		p := h2peer.Client(t, client)
		p.Must(headers(p.Framer, 0, true))
		p.ReadUntil(h2peer.IsReset(1))
		p.Must(p.Framer.WriteData(3, true, nil)) // an idle stream: ends the connection
		p.ReadUntil(h2peer.Is[*http2.GoAwayFrame])
		client.Close()
		synctest.Wait()
		close(calls)
		seen := map[string]bool{}
		for what := range calls {
			seen[what] = true
		}
		if !seen["write"] || !seen["close"] || !seen["log"] {
			t.Errorf("called %v, want write, close and log", seen)
		}
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A client whose first frames arrive after the connection has closed must not hold it for longer.
func TestLateSettingsDoNotDelayTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, (&watches{}).ServeHTTP, false)
		conn := f.dial(t)
		fmt.Fprint(conn, http2.ClientPreface)
		synctest.Wait()
		go f.http.Shutdown(t.Context())
		<-time.After(goAwayTimeout + lingerTime/2) // the connection closes and waits for its client
		framer := http2.NewFramer(conn, nil)
		if err := framer.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, _ = io.Copy(io.Discard, conn)
		for framer.WritePing(false, [8]byte{}) == nil { // until the server has closed its end
			<-time.After(time.Millisecond)
		}
		if d := time.Since(begin); d > lingerTime {
			t.Errorf("the server closed the connection after %v, want %v at most", d, lingerTime)
		}
	})
}
