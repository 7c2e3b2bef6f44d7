package rules

import (
	"cmp"
	"context"

	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
)

// newEvents are the events of the group events.k8s.io. They are the events of the core group, with
// other names for some members.
var newEvents = kind{
	"events.k8s.io", "v1", "events", "Event", "ev", "",
	[]string{
		"reason", "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
		"regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath", "reportingController", "type",
	},
}

// eventMembers holds, by apiVersion, the names of members of an Event whose names in the other
// group are the keys. Kubernetes defines them in pkg/apis/events/v1/conversion.go.
var eventMembers = map[string]map[string]string{
	"v1": {
		"regarding": "involvedObject", "note": "message", "reportingController": "reportingComponent",
		"deprecatedSource": "source", "deprecatedFirstTimestamp": "firstTimestamp",
		"deprecatedLastTimestamp": "lastTimestamp", "deprecatedCount": "count",
	},
	"events.k8s.io/v1": {
		"involvedObject": "regarding", "message": "note", "reportingComponent": "reportingController",
		"source": "deprecatedSource", "firstTimestamp": "deprecatedFirstTimestamp",
		"lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount",
	},
}

// convertEvent is the [kubeapi.Converter] of the events of both groups.
func convertEvent(ctx context.Context, object []byte, apiVersion string) ([]byte, error) {
	object, err := kubeapi.SetAPIVersion(ctx, object, apiVersion)
	if err != nil {
		return nil, err
	}
	converted := append(make([]byte, 0, len(object)+64), '{')
	err = rawjson.Members(object, func(name string, value rawjson.Span) error {
		if len(converted) > 1 {
			converted = append(converted, ',')
		}
		converted = rawjson.AppendString(converted, cmp.Or(eventMembers[apiVersion][name], name))
		converted = append(append(converted, ':'), value.Of(object)...)
		return nil
	})
	return append(converted, '}'), err
}
