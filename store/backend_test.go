package store_test

import (
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

func TestDraftSealsOneObjectPerVersion(t *testing.T) {
	d := store.Draft{
		Key: listwatch.Key{Name: "a"}, Labels: map[string]string{"l": "v"}, Fields: map[string]string{"f": "w"},
		Before: []byte(`{"metadata":{"name":"a","resourceVersion":`), After: []byte(`}}`),
	}
	one, two := d.Seal(9), d.Seal(10)
	for want, o := range map[string]*listwatch.Object{
		`{"metadata":{"name":"a","resourceVersion":"9"}}`:  one,
		`{"metadata":{"name":"a","resourceVersion":"10"}}`: two,
		`{"metadata":{"name":"a","resourceVersion":"11"}}`: two.At(11),
	} {
		if string(o.Data) != want || o.Key != d.Key || o.Labels["l"] != "v" || o.Fields["f"] != "w" {
			t.Errorf("got %s, key %v, labels %v, fields %v, want %s and the attributes of the draft", o.Data, o.Key, o.Labels, o.Fields, want)
		}
	}
}
