package memory_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// A Flag is a Go type whose values can be stored and watched.
type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool `json:"enabled"`
}

// A collection of a Go type.
func ExampleNew() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	flags := memory.New[Flag]()
	flag, err := flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}})
	if err != nil {
		fmt.Println(err)
		return
	}

	for event, err := range flags.Events(ctx, listwatch.Query{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Type, event.Object.Name, event.Object.Enabled)
		if event.Object.Enabled {
			return
		}
		if _, err := flags.Update(ctx, flag.Key(), func(f *Flag) error { f.Enabled = true; return nil }); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// ADDED dark-mode false
	// MODIFIED dark-mode true
}

// A database with a collection of JSON objects.
func ExampleOpen() {
	ctx := context.Background()
	db := memory.Open(memory.Options{})
	pods, err := db.Collection(store.CollectionSpec{Kind: "Pod", Namespaced: true})
	if err != nil {
		fmt.Println(err)
		return
	}

	pod, err := pods.Create(ctx, []byte(`{"metadata": {"name": "web", "namespace": "prod"}, "spec": {"image": "v1"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = pods.Create(ctx, []byte(`{"metadata": {"name": "web", "namespace": "prod"}}`))
	fmt.Println(err)

	// The resourceVersion makes the write conditional: it fails if another write came first.
	changed := []byte(`{"metadata":{"name":"web","namespace":"prod","resourceVersion":"` + pod.Version.String() +
		`"},"spec":{"image":"v2"}}`)
	_, err = pods.Replace(ctx, pod.Key, changed)
	fmt.Println(err)
	_, err = pods.Replace(ctx, pod.Key, changed)
	fmt.Println(errors.Is(err, listwatch.Conflict))
	// Output:
	// already exists: pods "web" already exists
	// <nil>
	// true
}
