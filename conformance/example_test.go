package conformance_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/report"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// target describes the server under test. Open starts a server for each case.
var target = conformance.Target{
	Name:      "flags",
	Variants:  []string{"h1"},
	Abilities: harness.Writes,
	Open: func(t conformance.T, _ conformance.Setup) *conformance.Instance {
		flags, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Flag", Namespaced: true})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(&watchserver.Server{Source: flags})
		t.Cleanup(server.Close)
		u, err := url.Parse(server.URL + "/flags")
		if err != nil {
			t.Fatal(err)
		}
		return &conformance.Instance{URL: u, Kind: "Flag", Store: flagStore{flags}}
	},
}

// A flagStore implements conformance.Store.
type flagStore struct{ flags *store.Collection }

func (f flagStore) Put(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
	o, err := f.flags.Replace(ctx, key, data)
	if listwatch.CodeOf(err) == listwatch.NotFound {
		o, err = f.flags.Create(ctx, data)
	}
	if err != nil {
		return 0, err
	}
	return o.Version, nil
}

func (f flagStore) Delete(ctx context.Context, key listwatch.Key) (listwatch.Version, error) {
	o, err := f.flags.Delete(ctx, key, listwatch.Preconditions{})
	if err != nil {
		return 0, err
	}
	return o.Version, nil
}

// This test runs all cases against a server.
func ExampleRun() {
	_ = func(t *testing.T) { // TestConformance in your package
		conformance.Run(t, target)
	}
}

// This program runs the cases of one group and prints the failures.
func ExampleExecute() {
	r, err := conformance.Execute(context.Background(), target, conformance.Options{Run: []string{"select"}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range report.Findings(r) {
		fmt.Println(f.Location, f.Messages)
	}
	fmt.Println(r.OK())
	// Output: true
}

// This test runs all cases for servers against a store.
func ExampleTestSource() {
	_ = func(t *testing.T) { // TestConformance in your package
		conformance.TestSource(t, func(_ conformance.T, historyBytes int64) conformance.Database {
			return memory.Open(memory.Options{History: listwatch.Retention{Bytes: historyBytes}})
		})
	}
}

// This test checks a framing.
func ExampleTestFramer() {
	_ = func(t *testing.T) { // TestFraming in your package
		conformance.TestFramer(t, framing.JSONSeq{})
	}
}

func ExampleParseKnownFailures() {
	known, err := conformance.ParseKnownFailures(strings.NewReader("resume/*/h2 # issue 17\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	reason, ok := known.Reason("resume/from-rv/h2")
	fmt.Println(reason, ok)
	// Output: issue 17 true
}

func ExampleMatch() {
	fmt.Println(conformance.Match("resume/from-*", "resume/from-rv/h2"))
	fmt.Println(conformance.Match("resume/*/h1", "resume/from-rv/h2"))
	// Output:
	// true
	// false
}
