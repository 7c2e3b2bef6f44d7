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
	"github.com/listwatch/listwatch/store"
)

var keyA = listwatch.Key{Namespace: "n", Name: "a"}

// to is a change that makes data of whatever there is.
func to(data string) func(*listwatch.Object) ([]byte, error) {
	return func(*listwatch.Object) ([]byte, error) { return []byte(data), nil }
}

func meta(o *listwatch.Object, name string) string {
	return string(rawjson.Lookup(o.Data, "metadata", name))
}

func TestUpdateKeepsWhatNoWriterMayChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, _ := pods()
		old := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1}}`)
		time.Sleep(time.Hour) // of the bubble: the creation must not move with it
		const set = `"uid":"UID","resourceVersion":"3","generation":3,"creationTimestamp":"2000-01-01T00:00:00Z"`
		o, err := pods.Update(t.Context(), keyA, store.Preconditions{},
			to(`{"metadata":{"uid":"other","name":"a","creationTimestamp":"1999-01-01T00:00:00Z","generation":50,"resourceVersion":"9"},"spec":{"x":2}}`))
		if err != nil {
			t.Fatal(err)
		}
		want := `{"kind":"Pod","apiVersion":"v1","metadata":{"uid":"UID","name":"a","creationTimestamp":"2000-01-01T00:00:00Z","generation":2,"resourceVersion":"2","namespace":"n"},"spec":{"x":2}}`
		if diff := cmp.Diff(want, withUID(t, o.Data)); diff != "" || meta(o, "uid") != meta(old, "uid") {
			t.Errorf("uid %s, was %s (-want +got):\n%s", meta(o, "uid"), meta(old, "uid"), diff)
		}
		o, err = pods.Update(t.Context(), keyA, store.Preconditions{}, to(`{"metadata":{"name":"a","namespace":"n"},"spec":{"x":3}}`))
		if err != nil {
			t.Fatal(err)
		}
		want = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n",` + set + `},"spec":{"x":3}}`
		if diff := cmp.Diff(want, withUID(t, o.Data)); diff != "" {
			t.Errorf("without them (-want +got):\n%s", diff)
		}
	})
}

func TestGenerationGrowsWithWhatIsNeitherMetadataNorStatus(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"spec":            {`{"metadata":{"name":"a","namespace":"n"},"spec":{"x":2},"status":{"y":1}}`, "2"},
		"a new member":    {`{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1},"status":{"y":1},"data":{}}`, "2"},
		"a member less":   {`{"metadata":{"name":"a","namespace":"n"},"status":{"y":1}}`, "2"},
		"status":          {`{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1},"status":{"y":2}}`, "1"},
		"no status":       {`{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1}}`, "1"},
		"labels":          {`{"metadata":{"name":"a","namespace":"n","labels":{"l":"v"}},"spec":{"x":1},"status":{"y":1}}`, "1"},
		"another writing": {`{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1.0},"status":{"y":1}}`, "2"},
	} {
		pods, _ := pods()
		mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"spec":{"x":1},"status":{"y":1}}`)
		o, err := pods.Update(t.Context(), keyA, store.Preconditions{}, to(c.data))
		if err != nil || meta(o, "generation") != c.want || o.Version != 2 {
			t.Errorf("%s: got %v, %v, want generation %s at version 2", name, o, err, c.want)
		}
	}
}

func TestUpdateThatChangesNothingWritesNothing(t *testing.T) {
	pods, shelf := pods()
	old := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n","labels":{"l":"v"}},"spec":{"x":1}}`)
	for name, data := range map[string]string{
		"itself":                       string(old.Data),
		"with space":                   " " + strings.ReplaceAll(string(old.Data), ",", " ,\n"),
		"as it was created":            `{"metadata":{"name":"a","namespace":"n","labels":{"l":"v"}},"spec":{"x":1}}`,
		"server-set members elsewhere": `{"kind":"Pod","apiVersion":"v1","metadata":{"uid":"u","name":"a","namespace":"n","resourceVersion":"1","labels":{"l":"v"},"generation":8},"spec":{"x":1}}`,
	} {
		o, err := pods.Update(t.Context(), keyA, store.Preconditions{}, to(data))
		if err != nil || o != old {
			t.Errorf("%s: got %v, %v, want the old object", name, o, err)
		}
	}
	if shelf.commits != 1 {
		t.Errorf("%d commits, want the create alone", shelf.commits)
	}
	for name, data := range map[string]string{
		"another order":  `{"metadata":{"namespace":"n","name":"a","labels":{"l":"v"}},"spec":{"x":1}}`,
		"another member": `{"metadata":{"name":"a","namespace":"n","labels":{"l":"v"},"x":0},"spec":{"x":1}}`,
	} {
		if o, err := pods.Update(t.Context(), keyA, store.Preconditions{}, to(data)); err != nil || o == old {
			t.Errorf("%s: got %v, %v, want a new object", name, o, err)
		}
	}
}

func TestUpdateRefusesAnotherNameAndBrokenRules(t *testing.T) {
	pods, shelf := pods()
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
		_, err := pods.Update(t.Context(), keyA, store.Preconditions{}, to(data))
		if e := listwatch.AsError(err); e == nil || e.HTTPStatus() != status {
			t.Errorf("%s: got %v, want status %d", data, err, status)
		}
	}
	if shelf.commits != 1 {
		t.Errorf("%d commits, want the create alone", shelf.commits)
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	pods, _ := pods()
	const message = `pods "a" not found`
	_, err := pods.Get(t.Context(), keyA)
	wantCode(t, err, listwatch.NotFound, message)
	_, err = pods.Update(t.Context(), keyA, store.Preconditions{}, to(`{}`))
	wantCode(t, err, listwatch.NotFound, message)
	_, err = pods.Delete(t.Context(), keyA, store.Preconditions{})
	wantCode(t, err, listwatch.NotFound, message)
	if diff := cmp.Diff(&listwatch.Details{Name: "a", Kind: "pods"}, listwatch.AsError(err).Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

func TestPreconditionsThatDoNotHoldAreConflicts(t *testing.T) {
	pods, shelf := pods()
	o := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	uid := string(uidOf.FindSubmatch(o.Data)[1])
	const modified = `Operation cannot be fulfilled on pods "a": the object has been modified; please apply your changes to the latest version and try again`
	for p, message := range map[store.Preconditions]string{
		{Version: 2}:             modified,
		{Version: 2, UID: uid}:   modified,
		{UID: "other"}:           `Operation cannot be fulfilled on pods "a": Precondition failed: UID in precondition: other, UID in object meta: ` + uid,
		{UID: "u", Version: 1}:   `Operation cannot be fulfilled on pods "a": Precondition failed: UID in precondition: u, UID in object meta: ` + uid,
		{UID: uid[:35] + "\x00"}: "",
	} {
		_, err := pods.Update(t.Context(), keyA, p, to(`{"metadata":{"name":"a"},"x":1}`))
		wantCode(t, err, listwatch.Conflict, message)
		_, err = pods.Delete(t.Context(), keyA, p)
		wantCode(t, err, listwatch.Conflict, message)
		if e := listwatch.AsError(err); e.HTTPStatus() != http.StatusConflict || e.Details == nil || e.Details.Name != "a" {
			t.Errorf("got %+v, want status 409 and details", e)
		}
	}
	if shelf.commits != 1 {
		t.Errorf("%d commits, want the create alone", shelf.commits)
	}
	if _, err := pods.Update(t.Context(), keyA, store.Preconditions{UID: uid, Version: 1}, to(`{"metadata":{"name":"a"},"x":1}`)); err != nil {
		t.Errorf("update with preconditions that hold: %v", err)
	}
	if _, err := pods.Delete(t.Context(), keyA, store.Preconditions{UID: uid, Version: 2}); err != nil {
		t.Errorf("delete with preconditions that hold: %v", err)
	}
}

func TestUpdateIsMadeAnewWhenSomebodyWasFaster(t *testing.T) {
	pods, shelf := pods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"by":0}`)
	rounds := 5
	shelf.before = func(store.Change) {
		if rounds--; rounds >= 0 {
			shelf.version++
			shelf.objects[keyA] = shelf.objects[keyA].At(shelf.version)
		}
	}
	var seen []listwatch.Version
	o, err := pods.Update(t.Context(), keyA, store.Preconditions{}, func(old *listwatch.Object) ([]byte, error) {
		seen = append(seen, old.Version)
		return []byte(`{"metadata":{"name":"a"},"by":1}`), nil
	})
	if err != nil || o.Version != 7 {
		t.Fatalf("got %v, %v, want version 7", o, err)
	}
	if diff := cmp.Diff([]listwatch.Version{1, 2, 3, 4, 5, 6}, seen); diff != "" {
		t.Errorf("the states that the change was made from (-want +got):\n%s", diff)
	}
}

func TestUpdateWithAVersionIsTriedOnce(t *testing.T) {
	pods, shelf := pods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	shelf.before = func(store.Change) {
		shelf.version++
		shelf.objects[keyA] = shelf.objects[keyA].At(shelf.version)
	}
	calls := 0
	_, err := pods.Update(t.Context(), keyA, store.Preconditions{Version: 1}, func(*listwatch.Object) ([]byte, error) {
		calls++
		return []byte(`{"metadata":{"name":"a"},"x":1}`), nil
	})
	wantCode(t, err, listwatch.Conflict, "")
	if calls != 1 {
		t.Errorf("tried %d times, want once", calls)
	}
}

func TestUpdateGivesUpAtLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, shelf := pods()
		mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
		shelf.before = func(store.Change) {
			shelf.version++
			shelf.objects[keyA] = shelf.objects[keyA].At(shelf.version)
		}
		change := to(`{"metadata":{"name":"a"},"x":1}`)
		_, err := pods.Update(t.Context(), keyA, store.Preconditions{}, change)
		wantCode(t, err, listwatch.Conflict, "")
		if shelf.version != 101 {
			t.Errorf("tried %d times, want 100", shelf.version-1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err = pods.Update(ctx, keyA, store.Preconditions{}, change); err != context.DeadlineExceeded {
			t.Errorf("got %v, want the error of the context as it is", err)
		}
	})
}

func TestErrorsOfTheChangeComeBackUnchanged(t *testing.T) {
	pods, shelf := pods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	for _, want := range []error{errors.New("no"), &listwatch.Error{Code: listwatch.Conflict, Message: "mine"}} {
		calls := 0
		o, err := pods.Update(t.Context(), keyA, store.Preconditions{}, func(*listwatch.Object) ([]byte, error) {
			calls++
			return nil, want
		})
		if err != want || o != nil || calls != 1 {
			t.Errorf("got %v, %v after %d calls, want %v after one", o, err, calls, want)
		}
	}
	if shelf.commits != 1 {
		t.Errorf("%d commits, want the create alone", shelf.commits)
	}
}

func TestReplaceTakesItsPreconditionsFromTheObject(t *testing.T) {
	pods, _ := pods()
	o := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"x":0}`)
	replace := func(data string) error {
		_, err := pods.Replace(t.Context(), keyA, []byte(data))
		return err
	}
	edited := strings.Replace(string(o.Data), `"x":0`, `"x":1`, 1)
	if err := replace(edited); err != nil {
		t.Errorf("what was read, changed and sent back: %v", err)
	}
	wantCode(t, replace(edited), listwatch.Conflict, "")
	wantCode(t, replace(`{"metadata":{"name":"a","uid":"other"},"x":2}`), listwatch.Conflict, "")
	wantCode(t, replace(`{"metadata":{"name":"a","resourceVersion":"x"},"x":2}`), listwatch.Invalid, "")
	wantCode(t, replace(`{"metadata":{"name":"a","resourceVersion":7},"x":2}`), listwatch.Invalid, "")
	for _, unconditional := range []string{`{"metadata":{"name":"a"},"x":2}`, `{"metadata":{"name":"a","resourceVersion":"","uid":null},"x":3}`} {
		if err := replace(unconditional); err != nil {
			t.Errorf("%s: %v", unconditional, err)
		}
	}
}

func TestDeleteReturnsTheLastStateAtItsOwnVersion(t *testing.T) {
	pods, _ := pods()
	o := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"x":0}`)
	last, err := pods.Delete(t.Context(), keyA, store.Preconditions{})
	if err != nil || last.Version != 2 {
		t.Fatalf("got %v, %v, want version 2", last, err)
	}
	if want := strings.Replace(string(o.Data), `"resourceVersion":"1"`, `"resourceVersion":"2"`, 1); string(last.Data) != want {
		t.Errorf("got %s, want %s", last.Data, want)
	}
	again := mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"},"x":0}`)
	if meta(again, "uid") == meta(o, "uid") {
		t.Error("an object that was created again has the uid of the old one")
	}
}

func TestDeleteOfAnObjectThatChangesDeletesTheNewerState(t *testing.T) {
	pods, shelf := pods()
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	shelf.before = func(store.Change) {
		shelf.before = nil
		shelf.version++
		shelf.objects[keyA] = shelf.objects[keyA].At(shelf.version)
	}
	if last, err := pods.Delete(t.Context(), keyA, store.Preconditions{}); err != nil || last.Version != 3 {
		t.Errorf("got %v, %v, want version 3", last, err)
	}
}

func TestUpdateMendsWhatAForeignWriterLeftOut(t *testing.T) {
	pods, shelf := pods()
	foreign, err := listwatch.ParseObject([]byte(`{"metadata":{"name":"a","namespace":"n","generation":"x"},"spec":1}`))
	if err != nil {
		t.Fatal(err)
	}
	shelf.objects[keyA] = foreign
	o, err := pods.Update(t.Context(), keyA, store.Preconditions{}, to(`{"metadata":{"name":"a"},"spec":2}`))
	if err != nil || meta(o, "uid") == "" || meta(o, "creationTimestamp") == "" || meta(o, "generation") != "1" {
		t.Errorf("got %s, %v, want a uid, a creationTimestamp and generation 1", o.Data, err)
	}
	shelf.objects[keyA] = &listwatch.Object{Key: keyA, Data: []byte(`{"spec":1}`)}
	_, err = pods.Update(t.Context(), keyA, store.Preconditions{}, to(`{"metadata":{"name":"a"},"spec":2}`))
	wantCode(t, err, listwatch.Corrupt, "")
}
