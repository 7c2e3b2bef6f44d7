package store_test

import (
	"testing"

	"github.com/listwatch/listwatch"
)

func TestDryRunAppliesRulesAndWritesNothing(t *testing.T) {
	pods, backend := newPods()
	dry := pods.DryRun()
	o, err := dry.Create(t.Context(),
		[]byte(`{"metadata":{"generateName":"a-","namespace":"n"},"spec":{"nodeName":"x"}}`))
	if err != nil || o.Version != 0 || metadata(o, "resourceVersion") != "" || metadata(o, "uid") == "" ||
		o.Key.Name == "" || o.Fields["spec.nodeName"] != "x" {
		t.Errorf("create: got %+v, %v, want a complete object without a version", o, err)
	}
	old := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1}}`)
	_, err = dry.Create(t.Context(), []byte(`{"metadata":{"name":"a","namespace":"n"}}`))
	wantCode(t, err, listwatch.AlreadyExists, "")
	o, err = dry.Replace(t.Context(), keyA, []byte(`{"metadata":{"name":"a"},"spec":{"x":2}}`))
	if err != nil || metadata(o, "generation") != "2" || o.Version != old.Version {
		t.Errorf("replace: got %+v, %v, want generation 2 at version %v", o, err, old.Version)
	}
	_, err = dry.Replace(t.Context(), keyA, []byte(`{"metadata":{"name":"a","resourceVersion":"9"},"spec":{"x":2}}`))
	wantCode(t, err, listwatch.Conflict, "")
	o, err = dry.Delete(t.Context(), keyA, listwatch.Preconditions{})
	if err != nil || o.Version != old.Version {
		t.Errorf("delete: got %+v, %v, want the object", o, err)
	}
	_, err = dry.Delete(t.Context(), listwatch.Key{Namespace: "n", Name: "b"}, listwatch.Preconditions{})
	wantCode(t, err, listwatch.NotFound, "")
	if now, err := dry.Get(t.Context(), keyA); err != nil || now != old || backend.commits != 1 {
		t.Errorf("got %+v, %v after %d commits, want only the created object", now, err, backend.commits)
	}
}
