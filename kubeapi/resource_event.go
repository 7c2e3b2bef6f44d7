package kubeapi

import (
	"strings"

	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/schema"
)

// eventResource is core/v1 Event: what controllers tell people about objects. kubectl describe lists those of an object, and for some
// kinds fails where it can't. They stay until they are deleted; in a cluster they go after an hour.
func eventResource() Resource {
	return Resource{
		Version: "v1", Plural: "events", Singular: "event", ShortNames: []string{"ev"}, Kind: "Event", Namespaced: true,
		Fields: []string{
			"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
			"involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source.component", "type",
		},
		Columns: []Column{
			{Name: "Last Seen", Description: "The time since it was seen last.", cell: lastSeen},
			{Name: "Type", Description: "Whether it is normal or a warning.", Path: ".type"},
			{Name: "Reason", Description: "Why it was told, in one word.", Path: ".reason"},
			{Name: "Object", Description: "What it is about.", cell: aboutObject},
			{Name: "Source", Priority: 1, Description: "Who told it.", Path: ".source.component"},
			{Name: "Message", Description: "What happened.", Path: ".message"},
			{Name: "Count", Type: "integer", Priority: 1, Description: "How often it was seen.", Path: ".count"},
		},
		Schema: schema.Kubernetes("io.k8s.api.core.v1.Event"),
	}
}

// lastSeen is the age of the last one of a series, or of the only one.
func lastSeen(dst []byte, r *row) []byte {
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}} {
		if at := r.at(path...); !at.Time().IsZero() {
			return appendAge(dst, at, r.now)
		}
	}
	return appendAge(dst, r.at("metadata", "creationTimestamp"), r.now)
}

func aboutObject(dst []byte, r *row) []byte {
	return rawjson.AppendString(dst, strings.ToLower(r.at("involvedObject", "kind").Text())+"/"+r.at("involvedObject", "name").Text())
}
