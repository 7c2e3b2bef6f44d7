package kubeapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// metaVersion is the API version of the representations.
const metaVersion = "meta.k8s.io/v1"

// represent offers the representations that r may ask for: Table, for one object and for many, and PartialObjectMetadata, which has
// another name for many (Kubernetes API concepts, "Receiving resources as Tables" and "Metadata-only fetches").
func (c call) represent(r *http.Request) watchserver.Representer {
	return func(params map[string]string, list bool) (watchserver.Representation, error) {
		if params["g"] != "meta.k8s.io" || params["v"] != "v1" {
			return nil, nil
		}
		switch as := params["as"]; {
		case as == "Table":
			include, err := includeOf(r)
			return tableView{c.table, include, true}, err
		case as == "PartialObjectMetadata" && !list, as == "PartialObjectMetadataList" && list:
			return partialView{}, nil
		}
		return nil, nil
	}
}

// shaped returns o as shape shows it; nil: as it is.
func shaped(o *listwatch.Object, shape watchserver.Representation) *listwatch.Object {
	if shape == nil {
		return o
	}
	data := shape.AppendObject(nil, listwatch.Event{Type: listwatch.Added, Object: o, Version: o.Version})
	return &listwatch.Object{Key: o.Key, Version: o.Version, Data: data}
}

// An include says what of an object stands beside the cells of its row.
type include uint8

const (
	includeMetadata include = iota
	includeNone
	includeObject
)

func includeOf(r *http.Request) (include, error) {
	switch v := r.URL.Query().Get("includeObject"); v {
	case "", "Metadata":
		return includeMetadata, nil
	case "None":
		return includeNone, nil
	case "Object":
		return includeObject, nil
	default:
		return 0, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("includeObject: %q is none of None, Metadata and Object", v)}
	}
}

// A tableView shows objects as rows of a metav1.Table. Cells may tell ages, which are those of the moment of encoding.
type tableView struct {
	*table
	include include
	headed  bool // with the definitions of the columns
}

var _ watchserver.Representation = tableView{}

// AppendObject implements [transport.Representation]: a table of one row.
func (v tableView) AppendObject(dst []byte, e listwatch.Event) []byte {
	if e.Type == listwatch.Synced && v.include == includeNone {
		// Without the annotation in its metadata the client could not know it.
		v.include = includeMetadata
	}
	dst = v.AppendListHead(dst, appendVersion(make([]byte, 0, 64), e.Object.Version))
	dst = v.AppendItem(dst, e.Object)
	return append(dst, "]}"...)
}

func appendVersion(dst []byte, v listwatch.Version) []byte {
	dst = append(dst, `{"resourceVersion":"`...)
	dst = append(dst, v.String()...)
	return append(dst, `"}`...)
}

// Rest implements [transport.Representation].
func (v tableView) Rest() transport.Representation {
	v.headed = false
	return v
}

// Ages implements [transport.Representation].
func (v tableView) Ages() bool { return true }

// AppendListHead implements [watchserver.Representation].
func (v tableView) AppendListHead(dst, metadata []byte) []byte {
	dst = append(dst, `{"kind":"Table","apiVersion":"`+metaVersion+`","metadata":`...)
	dst = append(dst, metadata...)
	dst = append(dst, `,"columnDefinitions":`...)
	if v.headed {
		dst = append(dst, v.definitions...)
	} else {
		dst = append(dst, "null"...)
	}
	return append(dst, `,"rows":[`...)
}

// AppendItem implements [watchserver.Representation].
func (v tableView) AppendItem(dst []byte, o *listwatch.Object) []byte {
	now := time.Now()
	dst = append(dst, `{"cells":[`...)
	for i, cell := range v.cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = cell(dst, o.Data, now)
	}
	dst = append(dst, `],"object":`...)
	switch v.include {
	case includeMetadata:
		dst = partialView{}.AppendItem(dst, o)
	case includeNone:
		dst = append(dst, "null"...)
	case includeObject:
		dst = append(dst, o.Data...)
	}
	return append(dst, '}')
}

// A partialView shows the metadata of objects alone, as metav1.PartialObjectMetadata.
type partialView struct{}

var _ watchserver.Representation = partialView{}

// AppendObject implements [transport.Representation].
func (v partialView) AppendObject(dst []byte, e listwatch.Event) []byte {
	return v.AppendItem(dst, e.Object)
}

// Rest implements [transport.Representation].
func (v partialView) Rest() transport.Representation { return v }

// Ages implements [transport.Representation].
func (v partialView) Ages() bool { return false }

// AppendListHead implements [watchserver.Representation].
func (v partialView) AppendListHead(dst, metadata []byte) []byte {
	dst = append(dst, `{"kind":"PartialObjectMetadataList","apiVersion":"`+metaVersion+`","metadata":`...)
	dst = append(dst, metadata...)
	return append(dst, `,"items":[`...)
}

// AppendItem implements [watchserver.Representation].
func (v partialView) AppendItem(dst []byte, o *listwatch.Object) []byte {
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"`+metaVersion+`","metadata":`...)
	metadata := value(o.Data).at("metadata")
	if len(metadata) == 0 {
		metadata = value("{}")
	}
	dst = append(dst, metadata...)
	return append(dst, '}')
}
