package etcd

import (
	"reflect"
	"testing"
)

func TestTraceHooksAreNeverNil(t *testing.T) {
	called := false
	own := &Trace{WatchLost: func(string, error) { called = true }}
	for _, trace := range []*Trace{nil, own} {
		for field, hook := range reflect.ValueOf(Options{Trace: trace}.withDefaults().Trace).Elem().Fields() {
			if hook.IsNil() {
				t.Errorf("%+v: %s is nil", trace, field.Name)
			}
		}
	}
	Options{Trace: own}.withDefaults().Trace.WatchLost("pods", nil)
	if !called {
		t.Error("WatchLost was replaced")
	}
	if own.Relisted != nil {
		t.Error("withDefaults has changed the Trace of the caller")
	}
}
