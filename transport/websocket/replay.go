package websocket

import (
	"bufio"
	"bytes"
	"net/http"
	"net/url"
)

// anyServer is what a library is told to dial: the connection is open already.
var anyServer = &url.URL{Scheme: "http", Host: "replay.invalid", Path: "/"}

// repliedHeader returns the headers of the answer that a library wants to see to its own handshake, once the real one is over.
func (c *conn) repliedHeader(r *http.Request) http.Header {
	h := http.Header{
		"Upgrade":              {"websocket"},
		"Connection":           {"Upgrade"},
		"Sec-Websocket-Accept": {acceptKey(r.Header.Get("Sec-Websocket-Key"))},
	}
	if c.gate.deflate {
		h.Set("Sec-Websocket-Extensions", agreedDeflate)
	}
	return h
}

// A replay is a connection for gorilla, which makes a WebSocket of a connection by a handshake alone: it answers that by itself.
type replay struct {
	*conn
	request []byte // of the handshake, as far as it has been written
	reply   []byte // what is still to be read of the answer
	done    bool   // the request was whole
}

// Write takes the handshake, and passes on everything after it.
func (c *replay) Write(p []byte) (int, error) {
	if c.done {
		return c.conn.Write(p)
	}
	c.request = append(c.request, p...)
	if !bytes.HasSuffix(c.request, []byte("\r\n\r\n")) {
		return len(p), nil
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(c.request)))
	if err != nil {
		return 0, err
	}
	reply := bytes.NewBufferString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = c.repliedHeader(r).Write(reply)
	reply.WriteString("\r\n")
	c.reply, c.request, c.done = reply.Bytes(), nil, true
	return len(p), nil
}

// Read returns the answer to the handshake and then what the connection has.
func (c *replay) Read(p []byte) (int, error) {
	if len(c.reply) > 0 {
		n := copy(p, c.reply)
		c.reply = c.reply[n:]
		return n, nil
	}
	return c.conn.Read(p)
}

// replayed is the same for nhooyr, which takes whatever an http.Client has for it.
type replayed struct{ conn *conn }

// RoundTrip answers the handshake.
func (t replayed) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: t.conn.repliedHeader(r), Body: t.conn, Request: r}, nil
}
