package rules

import (
	"reflect"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// EqualExceptTimes reports whether two objects are equal except for the times of their managers and
// their versions. An object to be stored has no version. As in Kubernetes, a write that would
// change only these times writes nothing.
func EqualExceptTimes(a, b []byte) bool {
	var objects [2]map[string]any
	for i, data := range [][]byte{a, b} {
		if err := utiljson.Unmarshal(data, &objects[i]); err != nil {
			return false
		}
		metadata, _ := objects[i]["metadata"].(map[string]any)
		delete(metadata, "resourceVersion")
		entries, _ := metadata["managedFields"].([]any)
		for _, entry := range entries {
			entry, _ := entry.(map[string]any)
			delete(entry, "time")
		}
	}
	return reflect.DeepEqual(objects[0], objects[1])
}
