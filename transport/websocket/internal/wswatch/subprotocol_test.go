package wswatch

import (
	"net/http"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/framing"
)

func FuzzSubprotocols(f *testing.F) {
	for _, s := range []string{
		"", "v1", "chat, " + (framing.CBORSeq{}).Subprotocol(), "bearer.YWJj, v1", ",,  ,",
		"v1\t",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := &http.Request{Header: http.Header{"Sec-Websocket-Protocol": {s}}}
		chosen, framer := chooseSubprotocol(r.Header, framing.Default())
		known := chosen == subprotocolAny || framer != nil && framing.SubprotocolOf(framer) == chosen
		if chosen != "" && (!known || !strings.Contains(s, chosen)) {
			t.Errorf("got subprotocol %q for the offer %q", chosen, s)
		}
	})
}
