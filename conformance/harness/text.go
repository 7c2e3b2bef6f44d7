package harness

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/listwatch/listwatch"
)

// EventJSON is a small event, and tinyObject its object.
func EventJSON(kind, name, version string) string {
	return `{"type":"` + kind + `","object":` + ObjectJSON(name, version) + `}`
}

// ObjectJSON returns a small object as JSON.
func ObjectJSON(name, version string) string {
	return `{"metadata":{"name":"` + name + `","resourceVersion":"` + version + `"}}`
}

// LineOf is line for an event in JSON; anything else is shown as it is.
func LineOf(event []byte) string {
	var w struct {
		Type   string
		Object struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(event, &w); err != nil {
		return fmt.Sprintf("%q (%v)", event, err)
	}
	return w.Type + " " + w.Object.Metadata.Name
}

// DecodeJSON is what JSON means.
func DecodeJSON(data []byte) any {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err.Error()
	}
	return v
}

// SSEMediaType is the media type of server-sent events.
const SSEMediaType = "text/event-stream"

// JSONEventPrefix begins every event of a watch in JSON that has a state.
const JSONEventPrefix = `{"type":"ADDED","object":{`

// SpecOf is what a case wrote as the spec of an object; a ConfigMap has it as data.
func SpecOf(object []byte) map[string]json.RawMessage {
	var o struct{ Spec, Data map[string]json.RawMessage }
	if err := json.Unmarshal(object, &o); err != nil {
		return nil
	}
	if o.Spec == nil {
		return o.Data
	}
	return o.Spec
}

// AllowBookmarks is the part of a query that asks for bookmarks.
const AllowBookmarks = "allowWatchBookmarks=true&"

// WebSocketExtensions is the header that negotiates extensions of WebSocket.
const WebSocketExtensions = "Sec-WebSocket-Extensions"

const (
	// Deflate offers permessage-deflate (RFC 7692).
	Deflate = "permessage-deflate"
	// DeflateNoContext offers it without a context that outlives a message.
	DeflateNoContext = Deflate + "; server_no_context_takeover; client_no_context_takeover"
	// SyncMarker ends each compressed message. It is not sent (RFC 7692, section 7.2.1).
	SyncMarker = "\x00\x00\xff\xff"
)

// From is the query of a watch that starts after v.
func From(v listwatch.Version) string { return "resourceVersion=" + v.String() }

// LabelSelector is the query of a watch with a label selector; fields is that for a field selector.
func LabelSelector(selector string) string { return "labelSelector=" + url.QueryEscape(selector) }

// FieldSelector returns the part of a query that sets a field selector.
func FieldSelector(selector string) string { return "fieldSelector=" + url.QueryEscape(selector) }

// InitialEvents asks for the state and for a bookmark that ends it.
const InitialEvents = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
