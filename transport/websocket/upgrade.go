package websocket

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"net"
	"net/http"
	"time"

	"github.com/listwatch/listwatch/transport/internal/connio"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// hijack hijacks the connection of w, or its stream over HTTP/2. It returns the bytes that the
// client has sent after the request, and does not keep the buffers of net/http.
func hijack(w http.ResponseWriter) (c net.Conn, early []byte, err error) {
	conn, buffers, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, wswatch.ErrNoHijack(err)
	}
	connio.TuneTCP(conn)
	_ = conn.SetDeadline(time.Time{}) // the timeouts of the http.Server are for short requests
	if n := buffers.Reader.Buffered(); n > 0 {
		early, _ = buffers.Reader.Peek(n)
		early = bytes.Clone(early)
	}
	connio.ReleaseBuffer(conn, buffers.Reader)
	return conn, early, nil
}

// switchingProtocols returns the response that accepts the handshake r. h has additional headers.
// subprotocol and extensions are empty if there are none.
func switchingProtocols(r *http.Request, h http.Header, subprotocol, extensions string) []byte {
	h = wswatch.WithoutHandshake(h)
	for name, value := range map[string]string{
		"Upgrade": "websocket", "Connection": "Upgrade",
		"Sec-Websocket-Accept":   acceptKey(r.Header.Get("Sec-Websocket-Key")),
		"Sec-Websocket-Protocol": subprotocol, "Sec-Websocket-Extensions": extensions,
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	response := bytes.NewBufferString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = h.Write(response) // a bytes.Buffer returns no error
	response.WriteString("\r\n")
	return response.Bytes()
}

// acceptKey returns the Sec-WebSocket-Accept that answers a Sec-WebSocket-Key:
// rfc6455#section-4.2.2.
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
