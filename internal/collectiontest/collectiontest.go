// Package collectiontest tests a Store by writing to it through package typed. The same test runs
// against a store in this process, and over HTTP against crudserver, kubeapi and a Kubernetes API
// server. All of them must behave alike.
package collectiontest

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/typed"
)

// A ConfigMap has some members of the ConfigMaps of Kubernetes.
type ConfigMap struct {
	APIVersion         string `json:"apiVersion,omitempty"`
	Kind               string `json:"kind,omitempty"`
	listwatch.Metadata `json:"metadata"`
	Data               map[string]string `json:"data,omitempty"`
}

// A fixture holds the values that the tests share.
type fixture struct {
	*testing.T
	maps                  typed.Collection[ConfigMap]
	apiVersion, namespace string
	isRemote              bool // errors come from a server
}

// Run tests maps, a collection of the kind ConfigMap, with new objects in namespace. Some servers
// require apiVersion and kind in each object; if apiVersion is empty, the objects have neither.
func Run(t *testing.T, maps listwatch.Store, apiVersion, namespace string) {
	_, isRemote := maps.(*client.Remote)
	f := func(test func(*fixture)) func(*testing.T) {
		return func(t *testing.T) {
			test(&fixture{t, typed.Collection[ConfigMap]{Store: maps}, apiVersion, namespace, isRemote})
		}
	}
	t.Run("CreateReturnsWhatTheServerSets", f((*fixture).create))
	t.Run("FailuresAreTyped", f((*fixture).failures))
	t.Run("ListSelects", f((*fixture).list))
	t.Run("ConcurrentUpdatesLoseNothing", f((*fixture).concurrentUpdates))
	t.Run("UpdateKeepsUnknownMembers", f((*fixture).unknownMembers))
	t.Run("UpdateWritesOnlyChanges", f((*fixture).unchanged))
	t.Run("MergePatchChangesMembers", f((*fixture).patch))
	t.Run("DeleteChecksTheVersion", f((*fixture).delete))
}

// newMap returns a ConfigMap that has not been created.
func (f *fixture) newMap(name string) ConfigMap {
	m := ConfigMap{Metadata: listwatch.Metadata{Name: name, Namespace: f.namespace}}
	if f.apiVersion != "" {
		m.APIVersion, m.Kind = f.apiVersion, "ConfigMap"
	}
	return m
}

// mustCreate creates a ConfigMap with a generated name.
func (f *fixture) mustCreate(data map[string]string) ConfigMap {
	f.Helper()
	m := f.newMap("")
	m.GenerateName, m.Labels, m.Data = "collection-", map[string]string{"test": "collection"}, data
	m, err := f.maps.Create(f.Context(), m)
	if err != nil {
		f.Fatal(err)
	}
	return m
}

// wantFailure checks that err is an error of the Store with the given code and HTTP status.
func (f *fixture) wantFailure(what string, err error, code listwatch.Code, status int) *listwatch.Error {
	f.Helper()
	e := listwatch.AsError(err)
	if e == nil || e.Remote != f.isRemote || e.Code != code || e.HTTPStatus() != status {
		f.Errorf("%s: got error %#v, want %v with status %d, and Remote %v", what, e, code, status, f.isRemote)
		return new(listwatch.Error)
	}
	return e
}

func (f *fixture) create() {
	m := f.mustCreate(map[string]string{"<&>": "\u2028"})
	if !strings.HasPrefix(m.Name, "collection-") || m.UID == "" || m.Version() == 0 || m.CreationTimestamp == nil ||
		m.Data["<&>"] != "\u2028" {
		f.Errorf("got %+v", m)
	}
	got, err := f.maps.Get(f.Context(), m.Key())
	if err != nil || got.Version() != m.Version() || got.UID != m.UID {
		f.Errorf("Get: got %+v, error %v, want %+v", got, err, m)
	}
}

func (f *fixture) failures() {
	m := f.mustCreate(nil)
	_, err := f.maps.Create(f.Context(), f.newMap(m.Name))
	e := f.wantFailure("create again", err, listwatch.AlreadyExists, 409)
	if e.Details == nil || e.Details.Name != m.Name || f.isRemote && e.Op != "create" {
		f.Errorf("create again: got details %+v of %q, want the name %s", e.Details, e.Op, m.Name)
	}
	_, err = f.maps.Create(f.Context(), f.newMap("Not A Name"))
	e = f.wantFailure("create with a bad name", err, listwatch.Invalid, 422)
	if e.Details == nil || len(e.Details.Causes) == 0 || e.Details.Causes[0].Field != "metadata.name" {
		f.Errorf("create with a bad name: got details %+v, want a cause for metadata.name", e.Details)
	}
	absent := listwatch.Key{Namespace: f.namespace, Name: "absent"}
	_, err = f.maps.Get(f.Context(), absent)
	f.wantFailure("get", err, listwatch.NotFound, 404)
	_, err = f.maps.Update(f.Context(), absent, func(*ConfigMap) error { return nil })
	f.wantFailure("update", err, listwatch.NotFound, 404)
	_, err = f.maps.Delete(f.Context(), absent, 0)
	f.wantFailure("delete", err, listwatch.NotFound, 404)
}

func (f *fixture) list() {
	m := f.mustCreate(nil)
	selector, err := listwatch.ParseLabelSelector("test=collection")
	if err != nil {
		f.Fatal(err)
	}
	all, version, err := f.maps.Items(f.Context(), listwatch.Query{
		Selection: listwatch.Selection{Namespace: f.namespace, Labels: selector},
	})
	if err != nil {
		f.Fatal(err)
	}
	found := false
	for _, other := range all {
		found = found || other.Key() == m.Key() && other.Version() == m.Version()
	}
	if !found || version < m.Version() {
		f.Errorf("got version %d and %+v, want %+v among them", version, all, m)
	}
}

func (f *fixture) concurrentUpdates() {
	const writers, writes = 4, 5
	m := f.mustCreate(map[string]string{"n": "0"})
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range writes {
				_, err := f.maps.Update(f.Context(), m.Key(), func(m *ConfigMap) error {
					n, err := strconv.Atoi(m.Data["n"])
					m.Data["n"] = strconv.Itoa(n + 1)
					return err
				})
				if err != nil {
					f.Error(err)
				}
			}
		})
	}
	all.Wait()
	if m, err := f.maps.Get(f.Context(), m.Key()); err != nil || m.Data["n"] != strconv.Itoa(writers*writes) {
		f.Errorf("got %v, error %v, want %d", m.Data, err, writers*writes)
	}
}

func (f *fixture) unknownMembers() {
	raw := typed.Collection[json.RawMessage]{Store: f.maps.Store}
	m := f.mustCreate(map[string]string{"a": "1"})
	_, err := raw.Update(f.Context(), m.Key(), func(data *json.RawMessage) error {
		*data = json.RawMessage(strings.TrimSuffix(string(*data), "}") + `,"binaryData":{"b":"AAAA"}}`)
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	_, err = f.maps.Update(f.Context(), m.Key(), func(m *ConfigMap) error { m.Data["a"] = "2"; return nil })
	if err != nil {
		f.Fatal(err)
	}
	data, err := raw.Get(f.Context(), m.Key())
	if err != nil || !strings.Contains(string(data), `"binaryData":{"b":"AAAA"}`) ||
		!strings.Contains(string(data), `"data":{"a":"2"}`) {
		f.Errorf("got %s, error %v, want both members", data, err)
	}
}

func (f *fixture) unchanged() {
	m := f.mustCreate(map[string]string{"a": "1"})
	same, err := f.maps.Update(f.Context(), m.Key(), func(*ConfigMap) error { return nil })
	if err != nil || same.Version() != m.Version() {
		f.Errorf("an update without a change: got version %d, error %v, want %d", same.Version(), err, m.Version())
	}
	own := errors.New("no")
	_, err = f.maps.Update(f.Context(), m.Key(), func(m *ConfigMap) error { m.Data["a"] = "2"; return own })
	if err != own {
		f.Errorf("got error %v, want the error of the function", err)
	}
	// Update must check the version even if the function clears the resourceVersion.
	tries := 0
	got, err := f.maps.Update(f.Context(), m.Key(), func(v *ConfigMap) error {
		if tries++; tries == 1 {
			_, err := f.maps.Update(f.Context(), m.Key(), func(m *ConfigMap) error { m.Data["b"] = "1"; return nil })
			if err != nil {
				return err
			}
		}
		v.ResourceVersion, v.Data = "", map[string]string{"a": v.Data["a"] + v.Data["b"]}
		return nil
	})
	if err != nil || tries != 2 || got.Data["a"] != "11" {
		f.Errorf("got %v after %d tries, error %v, want 11 after 2", got.Data, tries, err)
	}
}

func (f *fixture) patch() {
	m := f.mustCreate(map[string]string{"a": "1", "b": "2"})
	merge := func(key listwatch.Key, data string) (ConfigMap, error) {
		return f.maps.Patch(f.Context(), key, listwatch.Patch{Type: listwatch.MergePatch, Data: []byte(data)})
	}
	patched, err := merge(m.Key(), `{"data": {"a": "3", "b": null, "c": "4"}}`)
	if err != nil || len(patched.Data) != 2 || patched.Data["a"] != "3" || patched.Data["c"] != "4" ||
		patched.UID != m.UID {
		f.Errorf("got %+v, error %v, want a and c changed, and b removed", patched, err)
	}
	_, err = merge(m.Key(), `{"metadata":{"resourceVersion":"`+m.ResourceVersion+`"},"data":{"a":"5"}}`)
	f.wantFailure("patch of an old version", err, listwatch.Conflict, 409)
	_, err = merge(listwatch.Key{Namespace: f.namespace, Name: "missing"}, `{}`)
	f.wantFailure("patch of a missing object", err, listwatch.NotFound, 404)
	_, err = merge(m.Key(), `[]`)
	f.wantFailure("a patch that is no object", err, listwatch.Invalid, 400)
	_, err = f.maps.Patch(f.Context(), m.Key(), listwatch.Patch{Type: "text/plain", Data: []byte("{}")})
	f.wantFailure("a patch of another type", err, listwatch.Unsupported, 415)
}

func (f *fixture) delete() {
	m := f.mustCreate(map[string]string{"a": "1"})
	newer, err := f.maps.Update(f.Context(), m.Key(), func(m *ConfigMap) error { m.Data["a"] = "2"; return nil })
	if err != nil {
		f.Fatal(err)
	}
	_, err = f.maps.Delete(f.Context(), m.Key(), m.Version())
	f.wantFailure("delete of an old version", err, listwatch.Conflict, 409)
	last, err := f.maps.Delete(f.Context(), m.Key(), newer.Version())
	if err != nil {
		f.Error(err)
	}
	// Kubernetes API servers may respond with a Status instead of the object.
	if last.Name != "" && (last.Version() <= newer.Version() || last.Data["a"] != "2") {
		f.Errorf("the delete returned %+v, want the last state at the version of the delete", last)
	}
	_, err = f.maps.Get(f.Context(), m.Key())
	f.wantFailure("get a deleted object", err, listwatch.NotFound, 404)
}
