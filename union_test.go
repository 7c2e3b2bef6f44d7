package listwatch

import (
	"slices"
	"testing"
)

func TestUnionSyncedHasTheTypesOfItsParts(t *testing.T) {
	parts := []Description{
		{APIVersion: "v1", Kind: "Node"},
		{APIVersion: "apps/v1", Kind: "Deployment"},
		{APIVersion: "demo.example.com/v1beta1", Kind: "Gadget"},
	}
	e := NewSynced(Description{APIVersion: "v1", Kind: "List", Epoch: "e"}, State{Version: 7}, 0, parts...)
	got := e.Parts()
	same := slices.EqualFunc(got, parts,
		func(a, b Description) bool { return a.APIVersion == b.APIVersion && a.Kind == b.Kind })
	if !same {
		t.Errorf("got %+v of %s, want %+v", got, e.Object.Data, parts)
	}
	if e.Type != Synced || e.Version != 7 {
		t.Errorf("got %v at version %d, want Synced at 7", e.Type, e.Version)
	}
	const want = `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":` +
		`{"k8s.io/initial-events-end":"true","listwatch.dev/epoch":"e",` +
		`"listwatch.dev/parts":"Node.v1,Deployment.v1.apps,Gadget.v1beta1.demo.example.com"}}}`
	if string(e.Object.Data) != want {
		t.Errorf("got %s, want %s", e.Object.Data, want)
	}
	if NewSynced(parts[0], State{Version: 7}, 0).Parts() != nil {
		t.Error("a bookmark of one collection has parts")
	}
}
