package conformance_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch/transport"
)

// A compression is a compression method that a client can request.
type compression struct {
	name, transport string // transport is empty for the content codings of HTTP
}

var compressions = []compression{{"none", ""}, {"gzip", ""}, {"zstd", ""}, {"permessage-deflate", "websocket"}}

const extensionsHeader = "Sec-Websocket-Extensions"

// appliesTo reports whether streams of the given transport can use c. Other streams ignore c.
func (c compression) appliesTo(transport string) bool {
	return c.name == "none" || (c.transport == "websocket") == (transport == "websocket")
}

// isCompressed reports whether the stream is compressed as requested. The servers that use the
// gorilla and nhooyr libraries do not compress (docs/protocol.md).
func (c cell) isCompressed() bool {
	return c.compression.name != "none" && c.compression.appliesTo(c.client.transport) &&
		c.server.name != "websocket-gorilla" && c.server.name != "websocket-nhooyr"
}

// addTo requests the compression in r. If the transport does not support that compression, addTo
// sets the header by which another transport would request it. The server must ignore that header.
func (c cell) addTo(r *transport.Request) {
	z := c.compression
	switch ours := z.appliesTo(c.client.transport); {
	case z.name == "none":
	case ours && z.transport == "websocket":
		r.Codings = transport.Codings() // any coding enables the extension
	case ours:
		r.Codings = []string{z.name}
	case z.transport == "websocket":
		r.Header = r.Header.Clone()
		r.Header.Set(extensionsHeader, z.name)
		r.Header.Set("Accept-Encoding", "deflate") // an HTTP coding that the server does not offer
	default:
		r.Header = r.Header.Clone()
		r.Header.Set("Accept-Encoding", z.name)
	}
}

// verifyResponse returns an error unless the response header names the expected compression
// and no other.
func (c cell) verifyResponse(header http.Header) error {
	coding, extension := "", ""
	switch z := c.compression; {
	case !c.isCompressed():
	case z.transport == "websocket":
		extension = z.name
	default:
		coding = z.name
	}
	if got := header.Get("Content-Encoding"); got != coding {
		return fmt.Errorf("got Content-Encoding %q, want %q", got, coding)
	}
	if got, _, _ := strings.Cut(header.Get(extensionsHeader), ";"); got != extension {
		return fmt.Errorf("got Sec-WebSocket-Extensions %q, want %q", header.Get(extensionsHeader), extension)
	}
	return nil
}
