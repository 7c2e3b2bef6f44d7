package loop

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
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

// curl drops the part of a response that it reads together with RST_STREAM, so that it would not
// show why the server has refused an upload.
func TestResetsAreNotWrittenWithTheResponse(t *testing.T) {
	handlers := map[string]http.HandlerFunc{
		"an early response": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) },
		"an abort": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(flushing{w}, "data")
			panic(http.ErrAbortHandler)
		},
	}
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := memnet.Pipe()
				var mu sync.Mutex
				var writes [][]byte
				record := func(p []byte) (int, error) {
					mu.Lock()
					defer mu.Unlock()
					writes = append(writes, bytes.Clone(p))
					return server.Write(p)
				}
				state := &tls.ConnectionState{Version: tls.VersionTLS13}
				c := newConn(&http.Server{}, recordedConn{server, record}, state, handler, Options{})
				go new(Server).run(t.Context(), c)
				p := h2peer.Client(t, client)
				p.Must(post(p, 1))
				p.ReadUntil(h2peer.IsReset(1))
				client.Close()
				synctest.Wait()
				for _, w := range writes {
					kinds := map[http2.FrameType]bool{}
					for len(w) > 0 {
						kinds[http2.FrameType(w[3])] = true
						w = w[headerLen+int(w[0])<<16+int(w[1])<<8+int(w[2]):]
					}
					if kinds[http2.FrameRSTStream] && (kinds[http2.FrameHeaders] || kinds[http2.FrameData]) {
						t.Errorf("RST_STREAM was written together with frames of types %v", kinds)
					}
				}
			})
		})
	}
}

type recordedConn struct {
	net.Conn
	write writerFunc
}

func (c recordedConn) Write(p []byte) (int, error) { return c.write(p) }

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
