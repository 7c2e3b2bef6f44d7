package informer

import (
	"maps"
	"testing"

	"github.com/listwatch/listwatch"
)

// A copying value makes its labels anew whenever it is asked, as unstructured objects of Kubernetes do.
type copying struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
}

func (c *copying) GetName() string              { return c.Metadata.Name }
func (c *copying) GetNamespace() string         { return "" }
func (c *copying) GetLabels() map[string]string { return maps.Clone(c.Metadata.Labels) }

func TestLabelsOutliveTheirObject(t *testing.T) {
	const text = `{"metadata":{"name":"a","labels":{"l":"v"}}}`
	labelsOf[*struct{ Other string }](t, text)
	labelsOf[thing](t, text)
	if i := labelsOf[*copying](t, text); i.labels != nil {
		t.Errorf("the labels of a value that copies them are kept twice: %v", i.labels)
	}
}

// labelsOf checks the labels of an item whose object was released.
func labelsOf[T any](t *testing.T, text string) *Item[T] {
	t.Helper()
	o, err := listwatch.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	value, err := decodeJSON[T](o)
	if err != nil {
		t.Fatal(err)
	}
	i := newItem(o, value)
	i.detach(o)
	clear(o.Labels)
	clear(o.Data)
	if got := i.Labels(); len(got) != 1 || got["l"] != "v" || i.Key.Name != "a" {
		t.Errorf("%T: %s has the labels %v, want l=v of a", value, i.Key, got)
	}
	return i
}
