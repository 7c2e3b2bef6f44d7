package kubeproto_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubeproto"
)

func TestViewForgetsUnreachableObjects(t *testing.T) {
	v := kubeproto.NewView("v1", "Pod")
	func() {
		o := testkit.Must(listwatch.ParseObject([]byte(`{"metadata":{"name":"a"}}`)))(t)
		c := testkit.Must(v.Object(o))(t)
		if again := testkit.Must(v.Object(o))(t); again != c {
			t.Error("the object was converted twice")
		}
		if s := v.Stats(); s.Objects != 1 || s.ObjectBytes != int64(len(c.Data)) {
			t.Errorf("got %+v, want one object of %d bytes", s, len(c.Data))
		}
		runtime.KeepAlive(o)
	}()
	for deadline := time.After(10 * time.Second); v.Stats() != (listwatch.Stats{}); runtime.GC() {
		select {
		case <-deadline:
			t.Fatalf("the view still has %+v", v.Stats())
		case <-time.After(time.Millisecond):
		}
	}
}
