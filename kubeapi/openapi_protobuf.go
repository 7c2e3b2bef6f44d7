package kubeapi

import (
	"net/http"
	"strings"

	"github.com/listwatch/listwatch/watchserver"
)

// kubectl asks for version 2 of OpenAPI in Protocol Buffers alone, under one of two names: where version 3 does not know a kind, and,
// before its version 1.27, whenever it writes. Where it gets nothing it writes nothing; where it gets a document that doesn't know the
// kind either, it leaves it to the server to say what is wrong. That document is all that we have in this form.

var openAPI2Protobuf = []string{
	"application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
	"application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
}

// acceptsOpenAPI2Protobuf reports whether one of the names is among the values of the Accept headers. The second one can't be read as a
// media type: there is an @ in it (rfc9110#section-8.3.1).
func acceptsOpenAPI2Protobuf(accept []string) bool {
	all := strings.Join(accept, ",")
	return strings.Contains(all, openAPI2Protobuf[0]) || strings.Contains(all, openAPI2Protobuf[1])
}

func serveOpenAPI2Protobuf(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", openAPI2Protobuf[0])
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	watchserver.WriteBody(w, r, http.StatusOK, minimalOpenAPI2())
}

// bareOpenAPI2 is an openapi.v2.Document (gnostic's OpenAPIv2.proto) with its version, who made it, and no paths.
func minimalOpenAPI2() []byte {
	info := openAPIInfo()
	about := appendProtobufField(nil, 1, info["title"].(string))
	about = appendProtobufField(about, 2, info["version"].(string))
	document := appendProtobufField(nil, 1, "2.0")
	document = appendProtobufField(document, 2, string(about))
	return appendProtobufField(document, 8, "")
}

// protobufField appends a field of up to 127 bytes: a string, or a message as it is encoded.
func appendProtobufField(dst []byte, number byte, value string) []byte {
	const lengthDelimited = 2
	return append(append(dst, number<<3|lengthDelimited, byte(len(value))), value...)
}
