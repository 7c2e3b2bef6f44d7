package table

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/transport"
)

// metaGroup is the API group of the representations. kube-apiserver supports the versions
// v1 and v1beta1, which older clients request. The two versions differ only in name.
const metaGroup = "meta.k8s.io"

var metaAPIVersions = []string{"v1", "v1beta1"}

// Represent returns the representations that a request with query may have: Table, for one object
// or many, PartialObjectMetadata for one object, and PartialObjectMetadataList for many (Kubernetes
// API concepts, "Receiving resources as Tables" and "Metadata-only fetches").
func (t *Table) Represent(query url.Values) apihttp.RepresentationFunc {
	return func(params map[string]string, list bool) (apihttp.ListRepresentation, error) {
		if params["g"] != metaGroup || !slices.Contains(metaAPIVersions, params["v"]) {
			return nil, nil
		}
		partial := metadataForm{metaGroup + "/" + params["v"]}
		switch as := params["as"]; {
		case as == "Table" && query.Get("fields") != "":
			return nil, &listwatch.Error{
				Code: listwatch.Invalid, Message: "fields: not allowed with as=Table, whose columns need whole objects",
			}
		case as == "Table":
			include, err := parseInclude(query)
			return tableForm{t, partial, include, true}, err
		case as == "PartialObjectMetadata" && !list, as == "PartialObjectMetadataList" && list:
			return partial, nil
		}
		return nil, nil
	}
}

// An includeMode selects the part of the object that a row contains in addition to its
// cells.
type includeMode uint8

const (
	includeMetadata includeMode = iota
	includeNone
	includeObject
)

func parseInclude(query url.Values) (includeMode, error) {
	switch v := query.Get("includeObject"); v {
	case "", "Metadata":
		return includeMetadata, nil
	case "None":
		return includeNone, nil
	case "Object":
		return includeObject, nil
	default:
		return 0, &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("includeObject %q: must be None, Metadata or Object", v),
		}
	}
}

// A tableForm represents objects as rows of a metav1.Table. Its cells may contain ages,
// which depend on the time of encoding.
type tableForm struct {
	*Table
	partial     metadataForm // form of the object in each row; the table has the same API version
	include     includeMode
	withColumns bool // include the definitions of the columns
}

var _ apihttp.ListRepresentation = tableForm{}

// AppendObject implements [transport.Representation] with a table of one row.
func (t tableForm) AppendObject(dst []byte, e listwatch.Event) []byte {
	if e.Type == listwatch.Synced && t.include == includeNone {
		// Include the metadata, because its annotation marks the end of the initial events.
		t.include = includeMetadata
	}
	dst = t.AppendListHead(dst, listwatch.Description{}, appendListMeta(make([]byte, 0, 64), e.Object.Version))
	dst = t.AppendItem(dst, e.Object)
	return append(dst, "]}"...)
}

// appendListMeta appends the metadata of a list at version v, as JSON. The version is
// omitted if it is zero, as in a dry run.
func appendListMeta(dst []byte, v listwatch.Version) []byte {
	if v == 0 {
		return append(dst, "{}"...)
	}
	dst = append(dst, `{"resourceVersion":"`...)
	dst = append(dst, v.String()...)
	return append(dst, `"}`...)
}

// AfterFirst implements [transport.Representation].
func (t tableForm) AfterFirst() transport.Representation {
	t.withColumns = false
	return t
}

// DependsOnTime implements [transport.Representation].
func (t tableForm) DependsOnTime() bool { return true }

// ListType implements [apihttp.ListRepresentation].
func (t tableForm) ListType(listwatch.Description) (apiVersion, kind string) {
	return t.partial.apiVersion, "Table"
}

// AppendListHead appends the start of a table, whose list has other members than other lists.
func (t tableForm) AppendListHead(dst []byte, _ listwatch.Description, metadata []byte) []byte {
	dst = append(dst, `{"kind":"Table","apiVersion":"`...)
	dst = append(dst, t.partial.apiVersion...)
	dst = append(dst, `","metadata":`...)
	dst = append(dst, metadata...)
	dst = append(dst, `,"columnDefinitions":`...)
	if t.withColumns {
		dst = append(dst, t.definitions...)
	} else {
		dst = append(dst, "null"...)
	}
	return append(dst, `,"rows":[`...)
}

// AppendItem implements [apihttp.ListRepresentation].
func (t tableForm) AppendItem(dst []byte, o *listwatch.Object) []byte {
	r := newRow(o.Data, time.Now())
	dst = append(dst, `{"cells":[`...)
	for i, cell := range t.cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = cell(dst, r)
	}
	dst = append(dst, `],"object":`...)
	switch t.include {
	case includeMetadata:
		dst = t.partial.append(dst, r.at("metadata"))
	case includeNone:
		dst = append(dst, "null"...)
	case includeObject:
		dst = append(dst, o.Data...)
	}
	return append(dst, '}')
}

// A metadataForm represents objects by their metadata only, as
// metav1.PartialObjectMetadata.
type metadataForm struct {
	apiVersion string
}

var _ apihttp.ListRepresentation = metadataForm{}

// AppendObject implements [transport.Representation].
func (m metadataForm) AppendObject(dst []byte, e listwatch.Event) []byte {
	return m.AppendItem(dst, e.Object)
}

// AfterFirst implements [transport.Representation].
func (m metadataForm) AfterFirst() transport.Representation { return m }

// DependsOnTime implements [transport.Representation].
func (m metadataForm) DependsOnTime() bool { return false }

// ListType implements [apihttp.ListRepresentation].
func (m metadataForm) ListType(listwatch.Description) (apiVersion, kind string) {
	return m.apiVersion, "PartialObjectMetadataList"
}

// AppendItem implements [apihttp.ListRepresentation].
func (m metadataForm) AppendItem(dst []byte, o *listwatch.Object) []byte {
	return m.append(dst, jsonvalue.Value(o.Data).At("metadata"))
}

func (m metadataForm) append(dst, metadata []byte) []byte {
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"`...)
	dst = append(dst, m.apiVersion...)
	dst = append(dst, `","metadata":`...)
	if len(metadata) == 0 {
		metadata = []byte("{}")
	}
	dst = append(dst, metadata...)
	return append(dst, '}')
}
