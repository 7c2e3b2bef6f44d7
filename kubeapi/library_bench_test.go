package kubeapi

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// These benchmarks compare selectors, the validation of names and CBOR with Kubernetes'
// libraries (docs/adr/0016-kubernetes-libraries.md). Run them together, so that the
// ratios are meaningful.

const (
	benchLabels = "app=web,env in (prod,staging),tier notin (cache),!canary"
	benchFields = "spec.nodeName=node-17,status.phase!=Failed"
)

// against benchmarks the same work done by our code and by the library. Each function returns
// whether it succeeded.
func against(b *testing.B, ours, library func() bool) {
	for name, f := range map[string]func() bool{"ours": ours, "library": library} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !f() {
					b.Fatal("no success")
				}
			}
		})
	}
}

func BenchmarkSelectorsAgainstLibrary(b *testing.B) {
	object := &listwatch.Object{
		Labels: map[string]string{"app": "web", "env": "prod", "tier": "front"},
		Fields: map[string]string{"spec.nodeName": "node-17", "status.phase": "Running"},
	}
	b.Run("parse labels", func(b *testing.B) {
		against(b, func() bool { _, err := listwatch.ParseLabelSelector(benchLabels); return err == nil },
			func() bool { _, err := labels.Parse(benchLabels); return err == nil })
	})
	b.Run("match labels", func(b *testing.B) {
		ours, _ := listwatch.ParseLabelSelector(benchLabels)
		library, _ := labels.Parse(benchLabels)
		set := labels.Set(object.Labels)
		against(b, func() bool { return ours.Matches(object.Labels) }, func() bool { return library.Matches(set) })
	})
	b.Run("parse fields", func(b *testing.B) {
		against(b, func() bool { _, err := listwatch.ParseFieldSelector(benchFields); return err == nil },
			func() bool { _, err := fields.ParseSelector(benchFields); return err == nil })
	})
	b.Run("match fields", func(b *testing.B) {
		// The library needs all selectable fields of the object as a map before it can match.
		ours, _ := listwatch.ParseFieldSelector(benchFields)
		library, _ := fields.ParseSelector(benchFields)
		paths := []string{"metadata.name", "spec.nodeName", "status.phase"}
		against(b, func() bool { return ours.Matches(object) }, func() bool {
			set := make(fields.Set, len(paths))
			for _, path := range paths {
				set[path] = object.Field(path)
			}
			return library.Matches(set)
		})
	})
}

func BenchmarkNamesAgainstLibrary(b *testing.B) {
	const name, key, value = "web-7d4b9c6f5-x2x8q.example.com", "app.kubernetes.io/name", "web-frontend_1.2"
	b.Run("name", func(b *testing.B) {
		against(b, func() bool { return listwatch.CheckName(name) == nil },
			func() bool { return len(validation.NameIsDNSSubdomain(name, false)) == 0 })
	})
	b.Run("labels", func(b *testing.B) {
		set := map[string]string{key: value}
		against(b, func() bool { return listwatch.CheckLabels(set) == nil }, func() bool {
			return len(slices.Concat(utilvalidation.IsQualifiedName(key), utilvalidation.IsValidLabelValue(value))) == 0
		})
	})
}

// The library has no direct conversion between CBOR and JSON, so it needs Go values in between.
func BenchmarkCBORAgainstLibrary(b *testing.B) {
	pod := benchPod("v")
	var value any
	if err := json.Unmarshal([]byte(pod), &value); err != nil {
		b.Fatal(err)
	}
	item, err := direct.Marshal(value)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("to JSON", func(b *testing.B) {
		against(b, func() bool { _, err := framing.CBORToJSON(item, 1<<20); return err == nil }, func() bool {
			var value any
			if err := direct.Unmarshal(item, &value); err != nil {
				return false
			}
			_, err := json.Marshal(value)
			return err == nil
		})
	})
	b.Run("from JSON", func(b *testing.B) {
		against(b, func() bool { _, err := framing.AppendCBOR(nil, []byte(pod)); return err == nil }, func() bool {
			var value any
			if err := json.Unmarshal([]byte(pod), &value); err != nil {
				return false
			}
			_, err := direct.Marshal(value)
			return err == nil
		})
	})
}
