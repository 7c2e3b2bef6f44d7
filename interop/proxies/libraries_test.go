//go:build unix

package proxies

//lint:file-ignore SA1019 programs still use nhooyr, the deprecated predecessor of coder

import (
	"bytes"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"

	coder "github.com/coder/websocket"
	gorilla "github.com/gorilla/websocket"
	nhooyr "nhooyr.io/websocket"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/transport"
)

// openOurs returns a function that opens a watch with a client of the toolkit.
func openOurs(client transport.Client) func(t *testing.T, address string) io.Reader {
	return func(t *testing.T, address string) io.Reader {
		u, err := url.Parse(strings.Replace(address, "ws:", "http:", 1))
		if err != nil {
			t.Fatal(err)
		}
		request := &transport.Request{URL: u, Codings: []string{"gzip"}}
		if !strings.HasPrefix(address, "ws:") {
			request.Framings = []framing.Framer{framing.SSE{}} // has heartbeats
		}
		receiver, err := client.Dial(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { receiver.Close() })
		return linesOf(func() ([]byte, error) {
			e, err := receiver.Receive()
			return []byte(`{"type":"` + string(e.Type) + `","object":` + string(e.Object) + "}"), err
		})
	}
}

// linesOf returns a reader of the texts that next returns. Each text is one line.
func linesOf(next func() ([]byte, error)) io.Reader {
	r, w := io.Pipe()
	go func() { // ends with the watch
		for {
			line, err := next()
			if err != nil {
				w.CloseWithError(err)
				return
			}
			_, _ = w.Write(append(bytes.TrimSpace(line), '\n')) // r is never closed
		}
	}()
	return r
}

func openGorilla(t *testing.T, address string) io.Reader {
	dialer := gorilla.Dialer{EnableCompression: true}
	c, response, err := dialer.DialContext(t.Context(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	t.Cleanup(func() { c.Close() })
	return linesOf(func() ([]byte, error) {
		_, message, err := c.ReadMessage()
		return message, err
	})
}

func openCoder(mode coder.CompressionMode) func(t *testing.T, address string) io.Reader {
	return func(t *testing.T, address string) io.Reader {
		c, _, err := coder.Dial(t.Context(), address, &coder.DialOptions{CompressionMode: mode})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.CloseNow() })
		return linesOf(func() ([]byte, error) {
			_, message, err := c.Read(t.Context())
			return message, err
		})
	}
}

func openNhooyr(mode nhooyr.CompressionMode) func(t *testing.T, address string) io.Reader {
	return func(t *testing.T, address string) io.Reader {
		c, _, err := nhooyr.Dial(t.Context(), address, &nhooyr.DialOptions{CompressionMode: mode})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.CloseNow() })
		return linesOf(func() ([]byte, error) {
			_, message, err := c.Read(t.Context())
			return message, err
		})
	}
}

// openChromium opens a page that watches with fetch, EventSource and WebSocket. The returned reader
// contains an event when all three have received it.
func openChromium(t *testing.T, address string) io.Reader {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/chromium.html")
	if err != nil {
		t.Fatal(err)
	}
	site, shown := browsertest.Probe(t, &url.URL{Scheme: "http", Host: u.Host}, "/page", string(script))
	browsertest.Open(t.Context(), t, site.URL+"/page?"+u.RawQuery)
	return linesOf(func() ([]byte, error) {
		select {
		case line := <-shown:
			return line, nil
		case <-t.Context().Done():
			return nil, io.EOF
		}
	})
}
