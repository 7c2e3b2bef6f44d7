package listwatch

import (
	"encoding/json"
	"strings"
)

// NewBookmark returns a Bookmark event at the version of s, for a collection that d describes.
// The [Event.State] of the event is s if s has an ID.
func NewBookmark(d Description, s State) Event {
	b := newBookmark(d, s)
	return b.event(Bookmark)
}

// NewSynced returns a Synced event at the version of s, for a collection that d describes. The
// [Event.State] of the event is s if s has an ID. If since is not zero, the initial events were the
// difference to the state at that version; see [Query.Since]. In a union, the [Event.Parts] of the
// event are parts, of which only Kind and APIVersion are used.
func NewSynced(d Description, s State, since Version, parts ...Description) Event {
	b := newBookmark(d, s)
	b.annotate(AnnotationSynced, "true")
	if since != 0 {
		b.annotate(AnnotationSince, since.String())
	}
	if len(parts) > 0 {
		names := make([]string, len(parts))
		for i, p := range parts {
			names[i] = p.typeName()
		}
		b.annotate(AnnotationParts, strings.Join(names, ","))
	}
	return b.event(Synced)
}

// The annotations of bookmarks. Kubernetes has only AnnotationSynced.
const (
	// AnnotationSynced has the value "true" in the bookmark that ends the initial events
	// (KEP-3157).
	AnnotationSynced = "k8s.io/initial-events-end"
	// AnnotationEpoch has the value of [Description.Epoch].
	AnnotationEpoch = "listwatch.dev/epoch"
	// AnnotationState identifies the epoch and the selection of a state; see [Event.State].
	AnnotationState = "listwatch.dev/state"
	// AnnotationSince marks, in a Synced event, that the initial events were the difference to the
	// state as of this version; see [Event.Since].
	AnnotationSince = "listwatch.dev/initial-events-since"
	// AnnotationParts lists, in the Synced event of a union, the types of the objects of its parts,
	// in their order, such as "Node.v1,Deployment.v1.apps".
	AnnotationParts = "listwatch.dev/parts"
)

type bookmark struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	version Version
}

func newBookmark(d Description, s State) bookmark {
	b := bookmark{Kind: d.Kind, APIVersion: d.APIVersion, version: s.Version}
	b.Metadata.ResourceVersion = s.Version.String()
	if d.Epoch != "" {
		b.annotate(AnnotationEpoch, d.Epoch)
	}
	if s.ID != "" {
		b.annotate(AnnotationState, s.ID)
	}
	return b
}

func (b *bookmark) annotate(name, value string) {
	if b.Metadata.Annotations == nil {
		b.Metadata.Annotations = make(map[string]string, 4)
	}
	b.Metadata.Annotations[name] = value
}

func (b *bookmark) event(t EventType) Event {
	data, err := json.Marshal(b)
	if err != nil {
		panic("listwatch: encode a bookmark: " + err.Error())
	}
	return Event{Type: t, Version: b.version, Object: &Object{Version: b.version, Data: data}}
}
