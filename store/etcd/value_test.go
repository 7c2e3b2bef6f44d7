package etcd

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

var widgets = store.CollectionSpec{
	APIVersion: "example.com/v1", Kind: "Widget", Namespaced: true,
	Fields: []string{"spec.n"},
}.WithDefaults()

func TestDecodeInsertsTheRevision(t *testing.T) {
	key := listwatch.Key{Namespace: "n", Name: "a"}
	for in, want := range map[string]string{
		`{"metadata":{"name":"a","uid":"u","generation":1}}`:            `{"metadata":{"name":"a","uid":"u","resourceVersion":"7","generation":1}}`,
		`{"metadata":{"name":"a"}}`:                                     `{"metadata":{"name":"a","resourceVersion":"7"}}`,
		`{"metadata":{}}`:                                               `{"metadata":{"resourceVersion":"7"}}`,
		`{"metadata":{"resourceVersion":"3","name":"a"}}`:               `{"metadata":{"resourceVersion":"7","name":"a"}}`,
		" {\"kind\" : \"Widget\",\n\"metadata\" : { \"uid\" : \"u\" }}": `{"kind":"Widget","metadata":{"uid":"u","resourceVersion":"7"}}`,
	} {
		o, err := decode(widgets, key, []byte(in), 7)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := string(o.Data); got != want || o.Version != 7 || o.Key != key {
			t.Errorf("%s: got %v at %d with JSON %s, want %s", in, o.Key, o.Version, got, want)
		}
		// Object.At must find the position of the version.
		if got, want := string(o.At(12345).Data), strings.Replace(want, `"7"`, `"12345"`, 1); got != want {
			t.Errorf("%s at another version is %s, want %s", in, got, want)
		}
	}
}

func TestDecodeRejectsOtherValues(t *testing.T) {
	for in, want := range map[string]string{
		"k8s\x00\x0a\x04": "Protocol Buffers",
		`{`:               "JSON",
		`[]`:              "must be a JSON object",
		`{"metadata":1}`:  "metadata",
		`{"a":1}`:         "metadata",
		`{"kind":"Gadget","metadata":{"name":"a"}}`: `want "Widget"`,
		`{"metadata":{"resourceVersion":"x"}}`:      "resourceVersion",
	} {
		if _, err := decode(widgets, listwatch.Key{Name: "a"}, []byte(in), 7); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error about %s", in, err, want)
		}
	}
}

// FuzzDecode checks that decode either fails or returns an object at the given version.
// Encoding and decoding that object again must return the same object.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","uid":"u"},"spec":{"n":1}}`))
	f.Add([]byte(` {"metadata":{"resourceVersion":"1"}} `))
	f.Add([]byte("k8s\x00"))
	f.Add([]byte(`{"metadata":{},"metadata":{"uid":"u"}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		o, err := decode(widgets, listwatch.Key{Name: "a"}, value, 42)
		if err != nil {
			return
		}
		again, err := listwatch.ParseObject(o.Data)
		if err != nil || again.Version != 42 || !json.Valid(o.Data) {
			t.Fatalf("%q was decoded as %s, which parses as %v, %v", value, o.Data, again, err)
		}
		before, after, ok := bytes.Cut(o.Data, []byte(`"42"`))
		if !ok {
			t.Fatalf("%s has no version", o.Data)
		}
		stored := (&store.Draft{Before: before, After: after}).Unversioned().Data
		if !json.Valid(stored) {
			t.Fatalf("%s is stored as %s", o.Data, stored)
		}
		back, err := decode(widgets, listwatch.Key{Name: "a"}, stored, 43)
		if err != nil || back.Version != 43 {
			t.Fatalf("%s is decoded as %v, %v", stored, back, err)
		}
	})
}

func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		options    Options
		apiVersion string
		plural     string
		want       string
	}{
		{Options{}, "v1", "pods", "/listwatch/pods/n/a"},
		{Options{Prefix: "/x/"}, "apps/v1", "deployments", "/x/deployments.apps/n/a"},
		{Options{Prefix: "/registry", Layout: KubernetesLayout}, "v1", "pods", "/registry/pods/n/a"},
		{Options{Prefix: "/registry", Layout: KubernetesLayout}, "v1", "services", "/registry/services/specs/n/a"},
		{Options{Prefix: "/registry", Layout: KubernetesLayout}, "apps/v1", "deployments", "/registry/deployments/n/a"},
		{
			Options{Prefix: "/registry", Layout: KubernetesLayout},
			"networking.k8s.io/v1", "ingresses",
			"/registry/ingress/n/a",
		},
		{
			Options{Prefix: "/registry", Layout: KubernetesLayout},
			"example.com/v1", "widgets",
			"/registry/example.com/widgets/n/a",
		},
	} {
		spec := store.CollectionSpec{
			APIVersion: c.apiVersion, Kind: "X", Plural: c.plural,
			Namespaced: true,
		}.WithDefaults()
		r := newKeyRange(c.options.withDefaults(), spec)
		key := listwatch.Key{Namespace: "n", Name: "a"}
		if got := r.path(key); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.apiVersion, c.plural, got, c.want)
		}
		if back, err := r.key(c.want); err != nil || back != key {
			t.Errorf("%s: got %v, %v; want %v", c.want, back, err, key)
		}
		if !(r.dir < c.want && c.want < r.end()) || r.end() <= r.dir+"\xff\xff" {
			t.Errorf("%s is not within %q and %q", c.want, r.dir, r.end())
		}
	}
	r := keyRange{"/p/", true}
	for _, path := range []string{"/p/", "/p//a", "/p/n/", "/p/n/a/b"} {
		if k, err := r.key(path); err == nil {
			t.Errorf("%s is %v, want an error", path, k)
		}
	}
	if _, err := (keyRange{"/p/", false}).key("/p/n/a"); err == nil {
		t.Error("a key with a namespace without Namespaced: want an error")
	}
}

func TestOldServersAreRejected(t *testing.T) {
	for version, ok := range map[string]bool{
		"3.4.30": false, "3.4.31": true, "3.5.0": false, "3.5.12": false, "3.5.13": true, "3.5.13-rc.1": true,
		"3.6.0": true, "3.7.0": true,
		"4.0.0": true, "2.3.8": false, "3.3.27": false, "custom": true,
	} {
		if err := checkVersion(version); (err == nil) != ok {
			t.Errorf("%s: %v, want it accepted: %v", version, err, ok)
		}
	}
}

func TestOptionDefaults(t *testing.T) {
	o := Options{}.withDefaults()
	if o.Endpoints[0] != DefaultEndpoint || o.Prefix != DefaultPrefix || o.HistoryRevisions != DefaultHistory ||
		o.Timeout != DefaultTimeout {
		t.Errorf("%+v", o)
	}
	o.Trace.WatchLost("", errors.New("x")) // must not panic
	o.Trace.Loaded("", 0, 0, 0, 0)
}
