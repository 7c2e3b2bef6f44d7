package kubeapi

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// metaGroup is the API group of the representations. Their version v1beta1, for which older clients ask, differs from v1 in name
// alone; kube-apiserver has both.
const metaGroup = "meta.k8s.io"

var metaVersions = []string{"v1", "v1beta1"}

// represent offers the representations that r may ask for: Table, for one object and for many, and PartialObjectMetadata, which has
// another name for many (Kubernetes API concepts, "Receiving resources as Tables" and "Metadata-only fetches").
func (c call) represent(r *http.Request) watchserver.RepresentationFunc {
	return func(params map[string]string, list bool) (watchserver.ListRepresentation, error) {
		if params["g"] != metaGroup || !slices.Contains(metaVersions, params["v"]) {
			return nil, nil
		}
		partial := partialView{metaGroup + "/" + params["v"]}
		switch as := params["as"]; {
		case as == "Table":
			include, err := includeOf(r)
			return tableView{c.table, partial, include, true}, err
		case as == "PartialObjectMetadata" && !list, as == "PartialObjectMetadataList" && list:
			return partial, nil
		}
		return nil, nil
	}
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
	partial partialView // of the objects beside the cells; its API version is that of the table
	include include
	headed  bool // with the definitions of the columns
}

var _ watchserver.ListRepresentation = tableView{}

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

// appendVersion appends the metadata of a list of one object, which in a dry run has no version.
func appendVersion(dst []byte, v listwatch.Version) []byte {
	if v == 0 {
		return append(dst, "{}"...)
	}
	dst = append(dst, `{"resourceVersion":"`...)
	dst = append(dst, v.String()...)
	return append(dst, `"}`...)
}

// Rest implements [transport.Representation].
func (v tableView) AfterFirst() transport.Representation {
	v.headed = false
	return v
}

// Ages implements [transport.Representation].
func (v tableView) DependsOnTime() bool { return true }

// AppendListHead implements [watchserver.Representation].
func (v tableView) AppendListHead(dst, metadata []byte) []byte {
	dst = append(dst, `{"kind":"Table","apiVersion":"`...)
	dst = append(dst, v.partial.apiVersion...)
	dst = append(dst, `","metadata":`...)
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
	r := newRow(o.Data, time.Now())
	dst = append(dst, `{"cells":[`...)
	for i, cell := range v.cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = cell(dst, r)
	}
	dst = append(dst, `],"object":`...)
	switch v.include {
	case includeMetadata:
		dst = v.partial.append(dst, r.at("metadata"))
	case includeNone:
		dst = append(dst, "null"...)
	case includeObject:
		dst = append(dst, o.Data...)
	}
	return append(dst, '}')
}

// A partialView shows the metadata of objects alone, as metav1.PartialObjectMetadata.
type partialView struct {
	apiVersion string
}

var _ watchserver.ListRepresentation = partialView{}

// AppendObject implements [transport.Representation].
func (v partialView) AppendObject(dst []byte, e listwatch.Event) []byte {
	return v.AppendItem(dst, e.Object)
}

// Rest implements [transport.Representation].
func (v partialView) AfterFirst() transport.Representation { return v }

// Ages implements [transport.Representation].
func (v partialView) DependsOnTime() bool { return false }

// AppendListHead implements [watchserver.Representation].
func (v partialView) AppendListHead(dst, metadata []byte) []byte {
	dst = append(dst, `{"kind":"PartialObjectMetadataList","apiVersion":"`...)
	dst = append(dst, v.apiVersion...)
	dst = append(dst, `","metadata":`...)
	dst = append(dst, metadata...)
	return append(dst, `,"items":[`...)
}

// AppendItem implements [watchserver.Representation].
func (v partialView) AppendItem(dst []byte, o *listwatch.Object) []byte {
	return v.append(dst, value(o.Data).at("metadata"))
}

func (v partialView) append(dst, metadata []byte) []byte {
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"`...)
	dst = append(dst, v.apiVersion...)
	dst = append(dst, `","metadata":`...)
	if len(metadata) == 0 {
		metadata = []byte("{}")
	}
	dst = append(dst, metadata...)
	return append(dst, '}')
}
