package rules

import (
	"bytes"
	"context"
	"reflect"

	"github.com/listwatch/listwatch"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// KeepUnchanged returns rules like admit. If the admitted object differs from the old one only in
// the times of its managers, they return the old object, so that nothing is written. An apply
// cannot detect this earlier: if it sets a list whose elements have defaults, the list equals the
// old one only after admit has filled in the defaults.
func KeepUnchanged(admit Admit) Admit {
	return func(ctx context.Context, old *listwatch.Object, data []byte) ([]byte, error) {
		admitted, err := admit(ctx, old, data)
		if err != nil || old == nil || !bytes.Contains(old.Data, []byte(`"managedFields"`)) {
			return admitted, err
		}
		if equalExceptTimes(old.Data, admitted) {
			return old.Data, nil
		}
		return admitted, nil
	}
}

// equalExceptTimes reports whether two objects are equal except for the times of their managers and
// their versions. An object to be stored has no version.
func equalExceptTimes(a, b []byte) bool {
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
