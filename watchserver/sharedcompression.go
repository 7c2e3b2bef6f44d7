package watchserver

import (
	"fmt"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/transport"
)

// SharedCompression selects the watches of a collection whose events are compressed with the
// history of the events before them. The events are then several times smaller
// (docs/performance.md). Except for ShareInitial, it affects clients that accept gzip, or
// permessage-deflate with context takeover, if at least two of them watch the same selection in the
// same wire form.
//
// An attacker who can write objects into a watch, and can see the length of its encrypted frames,
// can learn secrets in other objects of the watch: text that repeats an earlier event takes fewer
// bytes (the BREACH attack; see docs/protocol.md). Use it where all objects of a watch have one
// owner, or where no object is confidential. The kind Secret of API version v1 is always excluded.
type SharedCompression uint8

// The values of [SharedCompression].
const (
	// ShareNever compresses each event separately.
	ShareNever SharedCompression = iota
	// ShareSingleNamespace shares history in watches of a single namespace.
	ShareSingleNamespace
	// ShareAlways shares history in all watches.
	ShareAlways
	// ShareInitial is for gzip. It compresses the initial events in blocks of about 128 KiB, which
	// all watches share, and does not compress later events, nor watches without initial events.
	// That costs a client in the same network the least time, so kube-apiserver does it, too.
	ShareInitial
)

var sharedCompressionNames = [...]string{
	ShareNever: "never", ShareSingleNamespace: "namespace", ShareAlways: "always", ShareInitial: "initial",
}

// String returns never, namespace, always or initial.
func (c SharedCompression) String() string {
	if int(c) < len(sharedCompressionNames) {
		return sharedCompressionNames[c]
	}
	return fmt.Sprintf("SharedCompression(%d)", uint8(c))
}

// MarshalText implements [encoding.TextMarshaler].
func (c SharedCompression) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler], for flags and configuration files.
func (c *SharedCompression) UnmarshalText(text []byte) error {
	for value, name := range sharedCompressionNames {
		if name == string(text) {
			*c = SharedCompression(value)
			return nil
		}
	}
	return fmt.Errorf("shared compression %q: must be never, namespace, always or initial", text)
}

// Check returns an error if c shares history and d describes Secrets, whose events must not share
// it.
func (c SharedCompression) Check(d listwatch.Description) error {
	if c == ShareNever || !isSecret(d) {
		return nil
	}
	return &listwatch.Error{
		Code:    listwatch.Invalid,
		Message: "shared compression of Secrets must be never, because it can disclose them to users who can write to the same watch",
	}
}

func isSecret(d listwatch.Description) bool { return d.APIVersion == "v1" && d.Kind == "Secret" }

// options sets the options of the watch q of source, whose request is r. It returns the request
// without a content coding if the events must not be compressed.
func (c SharedCompression) options(
	r *http.Request, q listwatch.Query, source listwatch.Source, o *transport.Options,
) *http.Request {
	switch {
	case c == ShareNever || isSecret(listwatch.Describe(source)):
	case c == ShareSingleNamespace:
		namespace, _ := q.Fields.Equality(listwatch.FieldNamespace)
		o.Segments = q.Namespace != "" || namespace != ""
	case c == ShareAlways:
		o.Segments = true
	case q.SendsInitialEvents():
		o.InitialBlocks = true
	case !httpheader.RequestsWebSocket(r):
		return transport.WithoutCompression(r)
	}
	return r
}
