package store_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
)

const withFinalizers = `{"metadata":{"name":"a","namespace":"n","finalizers":["demo/one","demo/two"]},"spec":{"x":1}}`

func TestObjectIsDeletedWithItsLastFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, _ := newPods()
		mustCreate(t, pods, withFinalizers)
		marked, err := pods.Delete(t.Context(), keyA, listwatch.Preconditions{})
		if err != nil {
			t.Fatal(err)
		}
		want := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","finalizers":["demo/one","demo/two"],"uid":"UID","resourceVersion":"2",` +
			`"generation":2,"creationTimestamp":"2000-01-01T00:00:00Z","deletionTimestamp":"2000-01-01T00:00:00Z","deletionGracePeriodSeconds":0},"spec":{"x":1}}`
		if diff := cmp.Diff(want, maskUID(t, marked.Data)); diff != "" {
			t.Errorf("after the delete (-want +got):\n%s", diff)
		}
		if again, err := pods.Delete(t.Context(), keyA, listwatch.Preconditions{}); err != nil ||
			again.Version != marked.Version {
			t.Errorf("a second delete: got %+v, %v, want the same object", again, err)
		}
		// An update whose object lacks the mark does not remove the mark.
		o, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{},
			replaceWith(`{"metadata":{"name":"a","finalizers":["demo/two"]},"spec":{"x":1}}`))
		if err != nil || metadata(o, "deletionTimestamp") == "" {
			t.Fatalf("got %s, %v, want it still marked", o.Data, err)
		}
		last, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{},
			replaceWith(`{"metadata":{"name":"a"},"spec":{"x":1}}`))
		if err != nil || last.Version != 4 || metadata(last, "finalizers") != "" ||
			metadata(last, "deletionTimestamp") == "" {
			t.Errorf("got %+v, %v, want the state of the last write at the version of the delete", last, err)
		}
		_, err = pods.Get(t.Context(), keyA)
		wantCode(t, err, listwatch.NotFound, "")
	})
}

func TestWritersCannotSetDeletionMarks(t *testing.T) {
	pods, backend := newPods()
	o := mustCreate(t, pods,
		`{"metadata":{"name":"a","namespace":"n","deletionTimestamp":"1999-01-01T00:00:00Z","deletionGracePeriodSeconds":5}}`)
	if metadata(o, "deletionTimestamp") != "" || metadata(o, "deletionGracePeriodSeconds") != "" {
		t.Errorf("got %s, want no deletion mark", o.Data)
	}
	_, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{},
		replaceWith(`{"metadata":{"name":"a","namespace":"n","deletionTimestamp":"1999-01-01T00:00:00Z"}}`))
	if !errors.Is(err, listwatch.Invalid) || backend.commits != 1 {
		t.Errorf("got %v and %d commits, want an error", err, backend.commits)
	}
}

func TestDeletedObjectGetsNoNewFinalizer(t *testing.T) {
	pods, _ := newPods()
	mustCreate(t, pods, withFinalizers)
	if _, err := pods.Delete(t.Context(), keyA, listwatch.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	_, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{},
		replaceWith(`{"metadata":{"name":"a","finalizers":["demo/one","demo/new","demo/b"]}}`))
	wantCode(t, err, listwatch.Invalid,
		`Pod "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, `+
			`found new finalizers []string{"demo/b", "demo/new"}`)
}

func TestFinalizersMustBeAListOfNames(t *testing.T) {
	pods, _ := newPods()
	for _, bad := range []string{`"x"`, `[1]`, `[""]`, `{}`} {
		_, err := pods.Create(t.Context(), []byte(`{"metadata":{"name":"a","namespace":"n","finalizers":`+bad+`}}`))
		wantCode(t, err, listwatch.Invalid, "")
	}
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n","finalizers":null}}`)
	mustCreate(t, pods, `{"metadata":{"name":"b","namespace":"n","finalizers":[]}}`)
	for _, name := range []string{"a", "b"} {
		key := listwatch.Key{Namespace: "n", Name: name}
		if _, err := pods.Delete(t.Context(), key, listwatch.Preconditions{}); err != nil {
			t.Error(err)
		}
		_, err := pods.Get(t.Context(), key)
		wantCode(t, err, listwatch.NotFound, "")
	}
}

func TestFaultyReferencesAreQuoted(t *testing.T) {
	pods, _ := newPods()
	const one = `{"apiVersion":"v1","kind":"A","name":"a","uid":"u","controller":true}`
	for owners, want := range map[string]string{
		`[{"uid":"u","name":"a","kind":"Event","apiVersion":"v1"}]`: `metadata.ownerReferences[0]: Invalid value: ` +
			`{"apiVersion":"v1","kind":"Event","name":"a","uid":"u"}: /v1, Kind=Event is disallowed from being an owner`,
		`[` + one + `,` + one + `]`: `metadata.ownerReferences: Invalid value: [` + one + `,` + one + `]: ` +
			`Only one reference can have Controller set to true. Found "true" in references for A/a and A/a`,
		`[{"apiVersion":"a/b/c","kind":"A","name":"a","uid":"u"}]`: `metadata.ownerReferences[0].apiVersion: ` +
			`Invalid value: "a/b/c": must be <group>/<version> or <version>`,
		`[{"apiVersion":"v1","kind":"A","name":"a"}]`: `metadata.ownerReferences[0].uid: Required value: must not be empty`,
	} {
		_, err := pods.Create(t.Context(),
			[]byte(`{"metadata":{"name":"a","namespace":"n","ownerReferences":`+owners+`}}`))
		wantCode(t, err, listwatch.Invalid, `Pod "a" is invalid: `+want)
	}
	_, err := pods.Create(t.Context(),
		[]byte(`{"metadata":{"name":"a","namespace":"n","finalizers":["orphan","foregroundDeletion"]}}`))
	wantCode(t, err, listwatch.Invalid, `Pod "a" is invalid: metadata.finalizers: Invalid value: `+
		`["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set`)
}
