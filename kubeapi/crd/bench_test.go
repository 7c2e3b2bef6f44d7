package crd

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkChecks measures the checks of an object of 2 KiB. Package schema checks the types and
// names of its fields without decoding it. Kubernetes' code checks the values of the decoded
// object.
func BenchmarkChecks(b *testing.B) {
	d := parseWidgets(b)[0]
	var parts strings.Builder
	for i := range 60 {
		fmt.Fprintf(&parts, `{"id":"part-%d","weight":%d.5},`, i, i)
	}
	object := []byte(`{"spec":{"color":"red","replicas":3,"parts":[` + parts.String() + `{"id":"z"}]}}`)
	for _, c := range []struct {
		name  string
		check func() bool
	}{
		{"types", func() bool { _, err := d.Schema.Check(object); return err == nil }},
		{"unknown", func() bool { return d.Schema.Unknown(object) == nil }},
		{"values", func() bool { return d.Validate(object, false) == nil }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(object)))
			b.ReportAllocs()
			for b.Loop() {
				if !c.check() {
					b.Fatal("the object is refused")
				}
			}
		})
	}
}
