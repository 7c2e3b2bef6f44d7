package typed

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
)

type inlined struct {
	Inlined string `json:"inlined"`
}

type tree struct {
	Children []tree `json:"children"`
}

func TestProjectionShowsWhatATypeHolds(t *testing.T) {
	type node struct {
		listwatch.Metadata `json:"metadata"`
		inlined
		Spec struct {
			Taints []struct {
				Key string `json:"key"`
			} `json:"taints,omitempty"`
			Since   time.Time         `json:"since"`
			Raw     json.RawMessage   `json:"raw"`
			Labels  map[string]string `json:"a b"`
			hidden  int
			Dropped int `json:"-"`
			Plain   *int
		} `json:"spec"`
		Tree *tree `json:"tree"`
	}
	want := "inlined,metadata.annotations,metadata.creationTimestamp,metadata.deletionTimestamp," +
		"metadata.finalizers,metadata.generateName,metadata.generation,metadata.labels,metadata.name," +
		"metadata.namespace,metadata.ownerReferences.apiVersion,metadata.ownerReferences.blockOwnerDeletion," +
		"metadata.ownerReferences.controller,metadata.ownerReferences.kind,metadata.ownerReferences.name," +
		"metadata.ownerReferences.uid,metadata.resourceVersion,metadata.uid,spec.Plain,spec['a b']," +
		"spec.raw,spec.since,spec.taints.key,tree.children"
	if got := Projection[node]().String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if p := Projection[json.RawMessage](); !p.Empty() {
		t.Errorf("a RawMessage: got %s, want whole objects", p)
	}
}

type seven[T any] struct{ A, B, C, D, E, F, G T }

// A type with more members than a projection can have paths is shown by less deep paths.
func TestProjectionOfALargeType(t *testing.T) {
	type large struct {
		Name                 string
		Deep                 seven[seven[int]]
		Other, Third, Fourth seven[int]
	}
	const want = "Deep.A,Deep.B,Deep.C,Deep.D,Deep.E,Deep.F,Deep.G,Fourth.A,"
	if got := Projection[large]().String(); !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want it to begin with %s", got, want)
	}
	whole := []byte(`{"Name":"n","Deep":{"A":{"A":1,"G":2}},"Other":{"C":3},"rest":{"A":4}}`)
	var before, after large
	err := errors.Join(json.Unmarshal(whole, &before), json.Unmarshal(Projection[large]().Append(nil, whole), &after))
	if err != nil || before != after {
		t.Errorf("got %+v, %v, want %+v", after, err, before)
	}
}
