package postgres

import (
	"testing"

	"github.com/listwatch/listwatch"
)

func TestVersionsAreNoContent(t *testing.T) {
	const short = `{"metadata":{"resourceVersion":"9","name":"a"},"spec":1}`
	for _, tt := range []struct {
		name, a, b string
		want       bool
	}{
		{"another version", short, `{"metadata":{"resourceVersion":"12345","name":"a"},"spec":1}`, true},
		{"another value", short, `{"metadata":{"resourceVersion":"9","name":"a"},"spec":2}`, false},
		{"another value before the version", `{"kind":"A",` + short[1:], `{"kind":"B",` + short[1:], false},
		{"without metadata", `{"spec":1}`, `{"spec":1}`, true},
	} {
		a, b := &listwatch.Object{Data: []byte(tt.a)}, &listwatch.Object{Data: []byte(tt.b)}
		if got := sameContent(a, b); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}
