package conformance_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch/transport"
)

// A compression is what a client asks for.
type compression struct {
	name, transport string // transport "": those whose answer has a content coding
}

var compressions = []compression{{"none", ""}, {"gzip", ""}, {"zstd", ""}, {"permessage-deflate", "websocket"}}

const extensionsHeader = "Sec-Websocket-Extensions"

// belongs reports whether it is with streams of a transport that c can be asked for. Elsewhere it is no reason to refuse: it goes unheard.
func (c compression) appliesTo(transport string) bool {
	return c.name == "none" || (c.transport == "websocket") == (transport == "websocket")
}

// isCompressed reports whether c compresses as the client asks. A server on the nhooyr backend declines (docs/protocol.md).
func (c cell) isCompressed() bool {
	return c.compression.name != "none" && c.compression.appliesTo(c.client.transport) && c.server.name != "websocket-nhooyr"
}

// ask makes r ask for the compression: as the client does where that belongs there, and otherwise in the words of the other transports.
func (c cell) addTo(r *transport.Request) {
	z := c.compression
	switch ours := z.appliesTo(c.client.transport); {
	case z.name == "none":
	case ours && z.transport == "websocket":
		r.Codings = transport.Codings() // any of them stands for it
	case ours:
		r.Codings = []string{z.name}
	case z.transport == "websocket":
		r.Header = r.Header.Clone()
		r.Header.Set(extensionsHeader, z.name)
		r.Header.Set("Accept-Encoding", "deflate") // it means something else, and nobody offers it
	default:
		r.Header = r.Header.Clone()
		r.Header.Set("Accept-Encoding", z.name)
	}
}

// checkAnswer says whether an answer names the compression that c has, and no other.
func (c cell) verifyResponse(answer http.Header) error {
	coding, extension := "", ""
	switch z := c.compression; {
	case !c.isCompressed():
	case z.transport == "websocket":
		extension = z.name
	default:
		coding = z.name
	}
	if got := answer.Get("Content-Encoding"); got != coding {
		return fmt.Errorf("got Content-Encoding %q, want %q", got, coding)
	}
	if got, _, _ := strings.Cut(answer.Get(extensionsHeader), ";"); got != extension {
		return fmt.Errorf("got Sec-WebSocket-Extensions %q, want %q", answer.Get(extensionsHeader), extension)
	}
	return nil
}
