package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/ports"
)

// slowReadTime is longer than any limit of the server for a client that reads nothing.
const slowReadTime = 100 * time.Second

// A client that reads slowly but steadily must not be disconnected, whatever its transport. A
// server of net/http does not disconnect it either. The receive buffers have the smallest size, so
// that the server notices each pause.
func TestSlowReadersStay(t *testing.T) {
	if os.Getenv(attackTimeEnv) == "" {
		t.Skip("run make attack")
	}
	address := ports.Address(t)
	p := startProcess(t, nil, "serve", "--addr", "127.0.0.1:0", "--tls-addr", address, "--tls-self-signed")
	clear := strings.TrimPrefix(p.awaitURL(t), "http://")
	for i := range 40 {
		pod := largePod(fmt.Sprint("large-", i), 100<<10)
		if code, _, body := request(t, http.MethodPost, "http://"+clear+podsPath, pod); code != http.StatusCreated {
			t.Fatalf("got %d %.200s", code, body)
		}
	}
	var readers sync.WaitGroup // more of them than t.Parallel would run at once
	for _, rate := range []int{2000, 4000, 8000} {
		for _, transport := range []string{"HTTP/1.1", "HTTP/2", "WebSocket"} {
			plain := slowReader{rate: rate, address: clear}
			secure := slowReader{rate: rate, address: address, tls: &tls.Config{InsecureSkipVerify: true}}
			for _, r := range []slowReader{plain, secure} {
				readers.Go(func() {
					n, open, err := r.read(t, transport)
					if open < slowReadTime {
						t.Errorf(
							"%s, TLS: %t, %d bytes per second: the server ended the watch after %v and %d bytes: %v",
							transport, r.tls != nil, rate, open.Round(time.Second), n, err)
					}
				})
			}
		}
	}
	readers.Wait()
}

// A slowReader opens watches on connections that deliver rate bytes per second.
type slowReader struct {
	rate    int
	address string
	tls     *tls.Config // nil without TLS
}

// read opens a watch, and reads until slowReadTime has passed or the server ends the watch.
func (s slowReader) read(t *testing.T, transport string) (n int64, open time.Duration, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), slowReadTime)
	defer cancel()
	begin := time.Now()
	body, err := s.open(ctx, transport)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { body.Close() })
		defer stop()
		n, err = io.Copy(io.Discard, body)
		body.Close()
	}
	if err == nil {
		err = errors.New("a clean end")
	}
	return n, time.Since(begin), err
}

// open returns the body of a watch.
func (s slowReader) open(ctx context.Context, transport string) (io.ReadCloser, error) {
	scheme := "http"
	if s.tls != nil {
		scheme = "https"
	}
	const query = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	url := scheme + "://" + s.address + podsPath + query
	r, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	switch transport {
	case "HTTP/2":
		response, err := s.http2().RoundTrip(r)
		if err != nil {
			return nil, err
		}
		return response.Body, nil
	case "WebSocket":
		r.Header = http.Header{
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
			"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="},
		}
		return s.exchange(ctx, r, http.StatusSwitchingProtocols)
	default:
		return s.exchange(ctx, r, http.StatusOK)
	}
}

func (s slowReader) http2() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx, "h2") }
	return &http.Transport{Protocols: protocols, DialContext: dial, DialTLSContext: dial, DisableCompression: true}
}

// exchange sends r over HTTP/1.1, and returns everything that follows the header of the response.
func (s slowReader) exchange(ctx context.Context, r *http.Request, want int) (io.ReadCloser, error) {
	conn, err := s.dial(ctx, "http/1.1")
	if err != nil {
		return nil, err
	}
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, r)
	if err != nil || response.StatusCode != want {
		return nil, fmt.Errorf("%v %v", response, err)
	}
	return struct {
		io.Reader
		io.Closer
	}{reader, conn}, nil
}

func (s slowReader) dial(ctx context.Context, protocol string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		return nil, err
	}
	conn = &slowConn{Conn: conn, rate: s.rate, next: time.Now()}
	if s.tls == nil {
		return conn, nil
	}
	config := s.tls.Clone()
	config.NextProtos = []string{protocol}
	secure := tls.Client(conn, config)
	return secure, secure.HandshakeContext(ctx)
}

// A slowConn reads rate bytes per second.
type slowConn struct {
	net.Conn
	rate int
	next time.Time // when the bytes that were read would have arrived
}

func (c *slowConn) Read(p []byte) (int, error) {
	<-time.After(time.Until(c.next))
	n, err := c.Conn.Read(p[:min(len(p), max(c.rate/10, 1))])
	c.next = time.Now().Add(time.Duration(n) * time.Second / time.Duration(c.rate))
	return n, err
}
