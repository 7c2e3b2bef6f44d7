package listwatch

import "encoding/json"

// NewBookmark returns a Bookmark event with version v, for a collection that d describes. If synced
// is true, it returns the Synced event that ends the initial events.
func NewBookmark(d Description, v Version, synced bool) Event {
	b := bookmark{Kind: d.Kind, APIVersion: d.APIVersion}
	b.Metadata.ResourceVersion = v.String()
	e := Event{Type: Bookmark, Version: v}
	if synced || d.Epoch != "" {
		b.Metadata.Annotations = make(map[string]string, 2)
	}
	if synced {
		e.Type = Synced
		b.Metadata.Annotations[AnnotationSynced] = "true"
	}
	if d.Epoch != "" {
		b.Metadata.Annotations[AnnotationEpoch] = d.Epoch
	}
	data, err := json.Marshal(b)
	if err != nil {
		panic("listwatch: encode a bookmark: " + err.Error())
	}
	e.Object = &Object{Version: v, Data: data}
	return e
}

// The annotations of bookmarks.
const (
	// AnnotationSynced has the value "true" in the bookmark that ends the initial events
	// (KEP-3157).
	AnnotationSynced = "k8s.io/initial-events-end"
	// AnnotationEpoch has the value of [Description.Epoch]. Kubernetes has no such annotation.
	AnnotationEpoch = "listwatch.dev/epoch"
)

type bookmark struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
}
