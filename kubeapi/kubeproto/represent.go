package kubeproto

import (
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/transport"
)

// Represent returns the representation that a client requests: as=PartialObjectMetadata for single
// objects, PartialObjectMetadataList for lists, and drop=metadata.managedFields for both. There are
// no tables in Protocol Buffers. It is an [apihttp.RepresentationFunc].
func Represent(params map[string]string, list bool) (apihttp.ListRepresentation, error) {
	r := representation{drops: slices.Contains(strings.Split(params["drop"], "+"), "metadata.managedFields")}
	want := partialKind
	if list {
		want += "List"
	}
	v := params["v"]
	isPartial := params["as"] == want && params["g"] == "meta.k8s.io" && (v == "v1" || v == "v1beta1")
	switch {
	case isPartial:
		r.apiVersion = "meta.k8s.io/" + v
	case params["as"] != "" || params["g"] != "" || v != "" || !r.drops:
		return nil, nil
	}
	return r, nil
}

const partialKind = "PartialObjectMetadata"

// A representation shows objects without some of their fields.
type representation struct {
	apiVersion string // of the metadata; empty for whole objects
	drops      bool   // without metadata.managedFields
}

// AppendObject implements [transport.Representation].
func (r representation) AppendObject(dst []byte, e listwatch.Event) []byte {
	data := e.Object.Data
	switch isOwn := data[0] == '{'; {
	case isOwn && r.apiVersion == "":
		return append(dst, data...)
	case isOwn:
		dst = rawjson.AppendString(append(dst, `{"kind":"`+partialKind+`","apiVersion":`...), r.apiVersion)
		dst = append(append(dst, `,"metadata":`...), rawjson.Lookup(data, "metadata")...)
		return append(dst, '}')
	}
	return r.AppendItem(dst, e.Object)
}

// AfterFirst implements [transport.Representation].
func (r representation) AfterFirst() transport.Representation { return r }

// DependsOnTime implements [transport.Representation].
func (r representation) DependsOnTime() bool { return false }

// ListType implements [apihttp.ListRepresentation].
func (r representation) ListType(d listwatch.Description) (apiVersion, kind string) {
	if r.apiVersion == "" {
		return d.APIVersion, d.Kind + "List"
	}
	return r.apiVersion, partialKind + "List"
}

// AppendItem implements [apihttp.ListRepresentation].
func (r representation) AppendItem(dst []byte, o *listwatch.Object) []byte {
	parsed, err := parse(o.Data)
	if err != nil {
		return append(dst, o.Data...) // the framing or the list returns an error
	}
	metadata := parsed.metadata.value
	if r.drops {
		metadata = withoutManagedFields(metadata)
	}
	if r.apiVersion == "" {
		return append(dst, parsed.withMetadata(metadata)...)
	}
	dst = appendEnvelope(dst, r.apiVersion, partialKind, sizeField(len(metadata)))
	return append(appendBytes(dst, metadataField, metadata), envelopeEnd...)
}

// withoutManagedFields returns a copy of metadata without managedFields.
func withoutManagedFields(metadata []byte) []byte {
	kept := make([]byte, 0, len(metadata))
	for f, err := range fields(metadata) {
		if err == nil && f.number != managedFieldsField {
			kept = append(kept, metadata[f.start:f.end]...)
		}
	}
	return kept
}
