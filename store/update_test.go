package store_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
)

var keyA = listwatch.Key{Namespace: "n", Name: "a"}

// replaceWith returns a function for Update that ignores the old object and returns data.
func replaceWith(data string) func(*listwatch.Object) ([]byte, error) {
	return func(*listwatch.Object) ([]byte, error) { return []byte(data), nil }
}

func metadata(o *listwatch.Object, name string) string {
	return string(rawjson.Lookup(o.Data, "metadata", name))
}

func TestUpdateKeepsServerSetMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, _ := newPods()
		old := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1}}`)
		time.Sleep(time.Hour) // creationTimestamp must not change
		const set = `"uid":"UID","resourceVersion":"3","generation":3,"creationTimestamp":"2000-01-01T00:00:00Z"`
		o, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{},
			replaceWith(
				`{"metadata":{"uid":"other","name":"a","creationTimestamp":"1999-01-01T00:00:00Z","generation":50,"resourceVersion":"9"},"spec":{"x":2}}`))
		if err != nil {
			t.Fatal(err)
		}
		want := `{"kind":"Pod","apiVersion":"v1","metadata":{"uid":"UID","name":"a","creationTimestamp":"2000-01-01T00:00:00Z","generation":2,"resourceVersion":"2","namespace":"n"},"spec":{"x":2}}`
		if diff := cmp.Diff(want, maskUID(t, o.Data)); diff != "" || metadata(o, "uid") != metadata(old, "uid") {
			t.Errorf("uid %s, was %s (-want +got):\n%s", metadata(o, "uid"), metadata(old, "uid"), diff)
		}
		o, err = pods.Update(t.Context(), keyA, listwatch.Preconditions{},
			replaceWith(`{"metadata":{"name":"a","namespace":"n"},"spec":{"x":3}}`))
		if err != nil {
			t.Fatal(err)
		}
		want = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n",` + set + `},"spec":{"x":3}}`
		if diff := cmp.Diff(want, maskUID(t, o.Data)); diff != "" {
			t.Errorf("without server-set members (-want +got):\n%s", diff)
		}
	})
}

// As in Kubernetes, an update checks generateName only as a part of a path.
func TestUpdateMayHaveAnyGenerateName(t *testing.T) {
	pods, _ := newPods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	for prefix, want := range map[string]error{"X_": nil, "a/b": listwatch.Invalid} {
		_, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{},
			replaceWith(`{"metadata":{"name":"a","generateName":"`+prefix+`"}}`))
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", prefix, err, want)
		}
	}
}

func TestGenerationIgnoresMetadataAndStatus(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"spec":         {`{"metadata":{"name":"a","namespace":"n"},"spec":{"x":2},"status":{"y":1}}`, "2"},
		"a new member": {`{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1},"status":{"y":1},"data":{}}`, "2"},
		"no spec":      {`{"metadata":{"name":"a","namespace":"n"},"status":{"y":1}}`, "2"},
		"status":       {`{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1},"status":{"y":2}}`, "1"},
		"no status":    {`{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1}}`, "1"},
		"labels": {
			`{"metadata":{"name":"a","namespace":"n","labels":{"l":"v"}},"spec":{"x":1},"status":{"y":1}}`, "1",
		},
		"another number": {`{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1.0},"status":{"y":1}}`, "2"},
	} {
		pods, _ := newPods()
		mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1},"status":{"y":1}}`)
		o, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{}, replaceWith(c.data))
		if err != nil || metadata(o, "generation") != c.want || o.Version != 2 {
			t.Errorf("%s: got %v, %v, want generation %s at version 2", name, o, err, c.want)
		}
	}
}

func TestUpdateWithoutChangeWritesNothing(t *testing.T) {
	pods, backend := newPods()
	old := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n","labels":{"l":"v"}},"spec":{"x":1}}`)
	for name, data := range map[string]string{
		"the object":                   string(old.Data),
		"with space":                   " " + strings.ReplaceAll(string(old.Data), ",", " ,\n"),
		"the created JSON":             `{"metadata":{"name":"a","namespace":"n","labels":{"l":"v"}},"spec":{"x":1}}`,
		"another order":                `{"spec":{"x":1},"metadata":{"namespace":"n","name":"a","labels":{"l":"v"}}}`,
		"server-set members elsewhere": `{"kind":"Pod","apiVersion":"v1","metadata":{"uid":"u","name":"a","namespace":"n","resourceVersion":"1","labels":{"l":"v"},"generation":8},"spec":{"x":1}}`,
	} {
		o, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{}, replaceWith(data))
		if err != nil || o != old {
			t.Errorf("%s: got %v, %v, want the old object", name, o, err)
		}
	}
	if backend.commits != 1 {
		t.Errorf("%d commits, want only the create", backend.commits)
	}
	for name, data := range map[string]string{
		"another number": `{"metadata":{"name":"a","namespace":"n","labels":{"l":"v"}},"spec":{"x":1.0}}`,
		"another member": `{"metadata":{"name":"a","namespace":"n","labels":{"l":"v"},"x":0},"spec":{"x":1}}`,
	} {
		if o, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{}, replaceWith(data)); err != nil ||
			o == old {
			t.Errorf("%s: got %v, %v, want a new object", name, o, err)
		}
	}
}

func TestUpdateRejectsOtherNamesAndBrokenRules(t *testing.T) {
	pods, backend := newPods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	for data, status := range map[string]int{
		`{"metadata":{"name":"b","namespace":"n"}}`:                    http.StatusBadRequest,
		`{"metadata":{"namespace":"n"}}`:                               http.StatusBadRequest,
		`{"metadata":{"generateName":"a","namespace":"n"}}`:            http.StatusBadRequest,
		`{"metadata":{"name":"a","namespace":"m"}}`:                    http.StatusBadRequest,
		`{"kind":"Node","metadata":{"name":"a","namespace":"n"}}`:      http.StatusBadRequest,
		`{"metadata":{"name":"a","namespace":"n","labels":{"l":"_"}}}`: http.StatusUnprocessableEntity,
		`{`: http.StatusBadRequest,
	} {
		_, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{}, replaceWith(data))
		testkit.WantStatus(t, data, err, status)
	}
	if backend.commits != 1 {
		t.Errorf("%d commits, want only the create", backend.commits)
	}
}

func TestMissingObjectIsNotFound(t *testing.T) {
	pods, _ := newPods()
	const message = `pods "a" not found`
	_, err := pods.Get(t.Context(), keyA)
	wantCode(t, err, listwatch.NotFound, message)
	_, err = pods.Update(t.Context(), keyA, listwatch.Preconditions{}, replaceWith(`{}`))
	wantCode(t, err, listwatch.NotFound, message)
	_, err = pods.Delete(t.Context(), keyA, listwatch.Preconditions{})
	wantCode(t, err, listwatch.NotFound, message)
	if diff := cmp.Diff(&listwatch.Details{Name: "a", Kind: "pods"}, listwatch.AsError(err).Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

func TestFailedPreconditionsAreConflicts(t *testing.T) {
	pods, backend := newPods()
	o := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	uid := string(uidOf.FindSubmatch(o.Data)[1])
	const modified = `Operation cannot be fulfilled on pods "a": the object has been modified; please apply your changes to the latest version and try again`
	for p, message := range map[listwatch.Preconditions]string{
		{Version: 2}:           modified,
		{Version: 2, UID: uid}: modified,
		{
			UID: "other",
		}: `Operation cannot be fulfilled on pods "a": Precondition failed: UID in precondition: other, UID in object meta: ` + uid,
		{
			UID:     "u",
			Version: 1,
		}: `Operation cannot be fulfilled on pods "a": Precondition failed: UID in precondition: u, UID in object meta: ` + uid,
		{UID: uid[:35] + "\x00"}: "",
	} {
		_, err := pods.Update(t.Context(), keyA, p, replaceWith(`{"metadata":{"name":"a"},"x":1}`))
		wantCode(t, err, listwatch.Conflict, message)
		_, err = pods.Delete(t.Context(), keyA, p)
		wantCode(t, err, listwatch.Conflict, message)
		if e := listwatch.AsError(err); e.HTTPStatus() != http.StatusConflict || e.Details == nil ||
			e.Details.Name != "a" {
			t.Errorf("got %+v, want status 409 and details", e)
		}
	}
	if backend.commits != 1 {
		t.Errorf("%d commits, want only the create", backend.commits)
	}
	if _, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{UID: uid, Version: 1},
		replaceWith(`{"metadata":{"name":"a"},"x":1}`)); err != nil {
		t.Errorf("update with preconditions that hold: %v", err)
	}
	if _, err := pods.Delete(t.Context(), keyA, listwatch.Preconditions{UID: uid, Version: 2}); err != nil {
		t.Errorf("delete with preconditions that hold: %v", err)
	}
}

func TestUpdateRetriesAfterAConflict(t *testing.T) {
	pods, backend := newPods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"by":0}`)
	otherWrites := 5
	backend.before = func(store.Change) {
		if otherWrites--; otherWrites >= 0 {
			backend.version++
			backend.objects[keyA] = backend.objects[keyA].At(backend.version)
		}
	}
	var seen []listwatch.Version
	o, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{}, func(old *listwatch.Object) ([]byte, error) {
		seen = append(seen, old.Version)
		return []byte(`{"metadata":{"name":"a"},"by":1}`), nil
	})
	if err != nil || o.Version != 7 {
		t.Fatalf("got %v, %v, want version 7", o, err)
	}
	if diff := cmp.Diff([]listwatch.Version{1, 2, 3, 4, 5, 6}, seen); diff != "" {
		t.Errorf("versions passed to the change (-want +got):\n%s", diff)
	}
}

func TestReplaceWritesTheSameDataInEachTry(t *testing.T) {
	pods, backend := newPods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	backend.before = func(store.Change) {
		if backend.version < 3 {
			backend.version++
			backend.objects[keyA] = backend.objects[keyA].At(backend.version)
		}
	}
	o, err := pods.Replace(t.Context(), keyA, []byte(`{"metadata":{"name":"a"},"x":1}`))
	if err != nil || o.Version != 4 || string(rawjson.Lookup(o.Data, "x")) != "1" || metadata(o, "generation") != "2" {
		t.Errorf("got %v, %v, want the new object at version 4", o, err)
	}
}

func TestUpdateWithAVersionIsNotRetried(t *testing.T) {
	pods, backend := newPods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	backend.before = func(store.Change) {
		backend.version++
		backend.objects[keyA] = backend.objects[keyA].At(backend.version)
	}
	calls := 0
	_, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{Version: 1},
		func(*listwatch.Object) ([]byte, error) {
			calls++
			return []byte(`{"metadata":{"name":"a"},"x":1}`), nil
		})
	wantCode(t, err, listwatch.Conflict, "")
	if calls != 1 {
		t.Errorf("tried %d times, want once", calls)
	}
}

func TestUpdateRetriesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, backend := newPods()
		mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
		backend.before = func(store.Change) {
			backend.version++
			backend.objects[keyA] = backend.objects[keyA].At(backend.version)
		}
		change := replaceWith(`{"metadata":{"name":"a"},"x":1}`)
		_, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{}, change)
		wantCode(t, err, listwatch.Conflict, "")
		if backend.version != 101 {
			t.Errorf("tried %d times, want 100", backend.version-1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err = pods.Update(ctx, keyA, listwatch.Preconditions{}, change); err != context.DeadlineExceeded {
			t.Errorf("got %v, want the unchanged error of the context", err)
		}
	})
}

func TestErrorsOfTheChangeAreUnchanged(t *testing.T) {
	pods, backend := newPods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	for _, want := range []error{errors.New("no"), &listwatch.Error{Code: listwatch.Conflict, Message: "mine"}} {
		calls := 0
		o, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{}, func(*listwatch.Object) ([]byte, error) {
			calls++
			return nil, want
		})
		if err != want || o != nil || calls != 1 {
			t.Errorf("got %v, %v after %d calls, want %v after one", o, err, calls, want)
		}
	}
	if backend.commits != 1 {
		t.Errorf("%d commits, want only the create", backend.commits)
	}
}

func TestReplaceChecksTheKeyBeforeTheObject(t *testing.T) {
	pods, _ := newPods()
	for data, want := range map[string]listwatch.Code{
		`{"metadata":{"name":"a"}}`:                     listwatch.NotFound,
		`{"metadata":{"name":"a","namespace":"n"}}`:     listwatch.NotFound,
		`{"metadata":{"name":"b"}}`:                     listwatch.Invalid,
		`{"metadata":{}}`:                               listwatch.Invalid,
		`{"metadata":{"name":"a","namespace":"other"}}`: listwatch.Invalid,
		`{"metadata":{"name":"a"},"x":1,"x":2}`:         listwatch.Invalid,
		`{"metadata":{"name":"a","labels":{"?":""}}}`:   listwatch.NotFound, // not 422
	} {
		_, err := pods.Replace(t.Context(), keyA, []byte(data))
		wantCode(t, err, want, "")
	}
}

func TestReplaceReadsPreconditionsFromTheObject(t *testing.T) {
	pods, _ := newPods()
	o := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"x":0}`)
	replace := func(data string) error {
		_, err := pods.Replace(t.Context(), keyA, []byte(data))
		return err
	}
	edited := strings.Replace(string(o.Data), `"x":0`, `"x":1`, 1)
	if err := replace(edited); err != nil {
		t.Errorf("an object that was read and edited: %v", err)
	}
	wantCode(t, replace(edited), listwatch.Conflict, "")
	wantCode(t, replace(`{"metadata":{"name":"a","uid":"other"},"x":2}`), listwatch.Conflict, "")
	wantCode(t, replace(`{"metadata":{"name":"a","resourceVersion":"x"},"x":2}`), listwatch.Invalid, "")
	wantCode(t, replace(`{"metadata":{"name":"a","resourceVersion":7},"x":2}`), listwatch.Invalid, "")
	for _, unconditional := range []string{
		`{"metadata":{"name":"a"},"x":2}`,
		`{"metadata":{"name":"a","resourceVersion":"","uid":null},"x":3}`,
	} {
		if err := replace(unconditional); err != nil {
			t.Errorf("%s: %v", unconditional, err)
		}
	}
}

func TestDeleteReturnsTheLastState(t *testing.T) {
	pods, _ := newPods()
	o := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"x":0}`)
	last, err := pods.Delete(t.Context(), keyA, listwatch.Preconditions{})
	if err != nil || last.Version != 2 {
		t.Fatalf("got %v, %v, want version 2", last, err)
	}
	if want := strings.Replace(string(o.Data), `"resourceVersion":"1"`, `"resourceVersion":"2"`,
		1); string(last.Data) != want {
		t.Errorf("got %s, want %s", last.Data, want)
	}
	again := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"x":0}`)
	if metadata(again, "uid") == metadata(o, "uid") {
		t.Error("a recreated object has the uid of the deleted one")
	}
}

func TestDeleteRetriesAfterAConflict(t *testing.T) {
	pods, backend := newPods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	backend.before = func(store.Change) {
		backend.before = nil
		backend.version++
		backend.objects[keyA] = backend.objects[keyA].At(backend.version)
	}
	if last, err := pods.Delete(t.Context(), keyA, listwatch.Preconditions{}); err != nil || last.Version != 3 {
		t.Errorf("got %v, %v, want version 3", last, err)
	}
}

func TestUpdateAddsMetadataMissingInTheBackend(t *testing.T) {
	pods, backend := newPods()
	foreign, err := listwatch.ParseObject([]byte(`{"metadata":{"name":"a","namespace":"n","generation":"x"},"spec":1}`))
	if err != nil {
		t.Fatal(err)
	}
	backend.objects[keyA] = foreign
	o, err := pods.Update(t.Context(), keyA, listwatch.Preconditions{},
		replaceWith(`{"metadata":{"name":"a"},"spec":2}`))
	if err != nil || metadata(o, "uid") == "" || metadata(o, "creationTimestamp") == "" ||
		metadata(o, "generation") != "1" {
		t.Errorf("got %s, %v, want a uid, a creationTimestamp and generation 1", o.Data, err)
	}
	backend.objects[keyA] = &listwatch.Object{Key: keyA, Data: []byte(`{"spec":1}`)}
	_, err = pods.Update(t.Context(), keyA, listwatch.Preconditions{},
		replaceWith(`{"metadata":{"name":"a"},"spec":2}`))
	wantCode(t, err, listwatch.Corrupt, "")
}
