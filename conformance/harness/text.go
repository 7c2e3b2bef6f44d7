package harness

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/listwatch/listwatch"
)

// EventJSON returns a small event in the JSON framing.
func EventJSON(kind, name, version string) string {
	return `{"type":"` + kind + `","object":` + ObjectJSON(name, version) + `}`
}

// ObjectJSON returns a small object as JSON.
func ObjectJSON(name, version string) string {
	return `{"kind":"Thing","apiVersion":"v1","metadata":{"name":"` + name + `","resourceVersion":"` + version + `"}}`
}

// EventLineFromJSON returns a JSON event in the form of EventLine, such as "ADDED a". If event
// is not valid JSON, it is returned quoted, with the error.
func EventLineFromJSON(event []byte) string {
	var w struct {
		Type   string
		Object struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(event, &w); err != nil {
		return fmt.Sprintf("%q (%v)", event, err)
	}
	return w.Type + " " + w.Object.Metadata.Name
}

// DecodeJSON returns the decoded JSON value, or the error text if data is not valid JSON.
func DecodeJSON(data []byte) any {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err.Error()
	}
	return v
}

// EncodeJSON returns v as JSON, or the error text if v has no JSON form.
func EncodeJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// SSEMediaType is the media type of server-sent events.
const SSEMediaType = "text/event-stream"

// SpecOf returns the spec of an object. For a ConfigMap, it returns the data.
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

// AllowBookmarks is the query parameter that requests bookmarks.
const AllowBookmarks = "allowWatchBookmarks=true&"

// WebSocketExtensions is the header that negotiates WebSocket extensions.
const WebSocketExtensions = "Sec-WebSocket-Extensions"

const (
	// Deflate offers permessage-deflate (RFC 7692).
	Deflate = "permessage-deflate"
	// DeflateNoContext offers permessage-deflate without a compression context that spans
	// messages.
	DeflateNoContext = Deflate + "; server_no_context_takeover; client_no_context_takeover"
	// SyncMarker is the end of the compressed data of a message. Senders remove it (RFC
	// 7692, section 7.2.1).
	SyncMarker = "\x00\x00\xff\xff"
)

// From returns the query parameter of a watch that starts after version v.
func From(v listwatch.Version) string { return "resourceVersion=" + v.String() }

// LabelSelector returns the query parameter for a label selector.
func LabelSelector(selector string) string { return "labelSelector=" + url.QueryEscape(selector) }

// FieldSelector returns the query parameter for a field selector.
func FieldSelector(selector string) string { return "fieldSelector=" + url.QueryEscape(selector) }

// InitialEvents holds the query parameters that request initial events and the bookmark
// after them.
const InitialEvents = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
