package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/apihttp"
)

// A Document is an OpenAPI document.
type Document struct {
	json     []byte
	protobuf []byte // of an empty document, in version 2 only; see acceptsProtobuf
	hash     string
}

// NewDocument returns the Document with the given content.
func NewDocument(content Map) Document {
	body, err := json.Marshal(content)
	if err != nil {
		panic("openapi: a document of strings always encodes: " + err.Error())
	}
	sum := sha256.Sum256(body)
	d := Document{json: append(body, '\n'), hash: strings.ToUpper(hex.EncodeToString(sum[:16]))}
	if content["swagger"] != nil {
		d.protobuf = emptyProtobuf(content["info"].(Map))
	}
	return d
}

// Path returns path, at which d is served, with the hash of d as its query. The result identifies
// this version of the document.
func (d Document) Path(path string) string { return path + "?hash=" + d.hash }

// Serve responds with d, or with 304 if the client already has it. A client must revalidate d
// unless its URL contains the hash.
func (d Document) Serve(w http.ResponseWriter, r *http.Request) error {
	accept, h := r.Header.Values("Accept"), w.Header()
	if err := apihttp.RequireJSON(framing.ParseAccept(replaceProtobufTypes(accept))); err != nil {
		if d.protobuf == nil || !acceptsProtobuf(accept) {
			return err
		}
		h.Set("Content-Type", protobufTypes[0])
		h.Set("Cache-Control", "no-cache, private")
		h.Add("Vary", "Accept")
		h.Set("X-Content-Type-Options", "nosniff")
		apihttp.WriteBody(w, r, http.StatusOK, d.protobuf)
		return nil
	}
	h.Add("Vary", "Accept")
	h.Set("Cache-Control", "no-cache, private")
	if apihttp.QueryOf(r).Get("hash") == d.hash {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	// The tag is weak because it is the same for compressed and uncompressed bodies
	// (rfc9110#section-8.8.1).
	h.Set("ETag", `W/"`+d.hash+`"`)
	if d.matchesETag(r.Header.Values("If-None-Match")) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	apihttp.WriteBody(w, r, http.StatusOK, d.json)
	return nil
}

// matchesETag reports whether If-None-Match contains the entity tag of d
// (rfc9110#section-13.1.2).
func (d Document) matchesETag(tags []string) bool {
	for _, value := range tags {
		for tag := range strings.SplitSeq(value, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == `"`+d.hash+`"` {
				return true
			}
		}
	}
	return false
}

// kubectl requests OpenAPI version 2 if version 3 does not contain a kind. Versions of
// kubectl below 1.27 also request it before each write. They accept only Protocol Buffers, under
// one of two media types. Without a response, kubectl refuses to write. If the document does
// not contain the kind either, kubectl leaves the validation to the server. Therefore the
// server responds with a document without any kinds.

var protobufTypes = []string{
	"application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
	"application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
}

// acceptsProtobuf reports whether the Accept headers contain one of the media types in
// protobufTypes. It compares strings, because the second type contains an @ and cannot be parsed
// (rfc9110#section-8.3.1).
func acceptsProtobuf(accept []string) bool {
	all := strings.Join(accept, ",")
	return strings.Contains(all, protobufTypes[0]) || strings.Contains(all, protobufTypes[1])
}

// emptyProtobuf encodes an openapi.v2.Document (gnostic's OpenAPIv2.proto) with its version and
// title and without paths.
func emptyProtobuf(info Map) []byte {
	about := appendProtobufField(nil, 1, info["title"].(string))
	about = appendProtobufField(about, 2, info["version"].(string))
	document := appendProtobufField(nil, 1, "2.0")
	document = appendProtobufField(document, 2, string(about))
	return appendProtobufField(document, 8, "")
}

// appendProtobufField appends a field of at most 127 bytes, which is a string or an encoded
// message.
func appendProtobufField(dst []byte, number byte, value string) []byte {
	const lengthDelimited = 2
	return append(append(dst, number<<3|lengthDelimited, byte(len(value))), value...)
}

// replaceProtobufTypes replaces kubectl's media types for Protocol Buffers with
// application/x-protobuf. kubectl's types contain an @, which is not valid in a media type
// (rfc9110#section-8.3.1), so the Accept header could not be parsed. kubectl prefers these
// types, but a client that also accepts JSON gets JSON, because this server's document in
// Protocol Buffers is almost empty.
func replaceProtobufTypes(accept []string) []string {
	var others []string
	for _, value := range accept {
		for element := range strings.SplitSeq(value, ",") {
			if strings.Contains(element, "spec.v2@v1.0+protobuf") ||
				strings.Contains(element, "spec.v3@v1.0+protobuf") {
				element = "application/x-protobuf"
			}
			others = append(others, element)
		}
	}
	return others
}
