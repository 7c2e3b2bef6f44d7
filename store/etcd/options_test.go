package etcd

import (
	"reflect"
	"testing"
)

func TestTraceHooksAreNeverNil(t *testing.T) {
	called := false
	own := &Trace{WatchLost: func(string, error) { called = true }}
	for _, trace := range []*Trace{nil, own} {
		for field, hook := range reflect.ValueOf(trace.withDefaults()).Elem().Fields() {
			if hook.IsNil() {
				t.Errorf("%+v: %s is nil", trace, field.Name)
			}
		}
	}
	own.withDefaults().WatchLost("pods", nil)
	if !called {
		t.Error("WatchLost was replaced")
	}
	if noTrace.WatchLost("pods", nil); own.Relisted != nil {
		t.Error("withDefaults has changed the Trace of the caller")
	}
}
