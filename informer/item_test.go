package informer

import (
	"maps"
	"testing"
	"unsafe"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/govalue"
)

// objectMeta has the same methods as metav1.ObjectMeta.
type objectMeta struct {
	Name, Namespace string
	Labels          map[string]string
}

func (m *objectMeta) GetName() string              { return m.Name }
func (m *objectMeta) GetNamespace() string         { return m.Namespace }
func (m *objectMeta) GetLabels() map[string]string { return m.Labels }

type kubePod struct {
	objectMeta
	Node string
}

type base struct{ listwatch.Metadata }

type nested struct {
	Spec string
	base
}

type bare struct{ Spec string }

func objectOf(namespace, name, app string) *listwatch.Object {
	fresh := func(s string) string { return string([]byte(s)) }
	return &listwatch.Object{
		Key:     listwatch.Key{Namespace: fresh(namespace), Name: fresh(name)},
		Version: 7, Labels: map[string]string{"app": fresh(app)},
	}
}

func sameString(a, b string) bool { return a == b && unsafe.StringData(a) == unsafe.StringData(b) }

// sharing makes an item from the given value. It reports whether the item shares its key and its
// labels with the value.
func sharing[T any](value T, key listwatch.Key, labels map[string]string) (sharesKey, sharesLabels bool) {
	o := objectOf("ns", "a", "web")
	i := newItem(o, value)
	sharesKey = sameString(i.Key.Name, key.Name) && sameString(i.Key.Namespace, key.Namespace)
	labels["probe"] = "" // appears in the item's labels only if both are the same map
	_, sharesLabels = i.Labels()["probe"]
	return sharesKey && i.Key == o.Key, sharesLabels
}

func TestItemSharesKeyAndLabelsWithValue(t *testing.T) {
	o := objectOf("ns", "a", "web")
	m := func() listwatch.Metadata {
		return listwatch.Metadata{Namespace: o.Key.Namespace, Name: o.Key.Name, Labels: maps.Clone(o.Labels)}
	}
	om := func() objectMeta { return objectMeta{o.Key.Name, o.Key.Namespace, maps.Clone(o.Labels)} }
	check := func(name string, sharesKey, sharesLabels bool) {
		if !sharesKey || !sharesLabels {
			t.Errorf("%s: shares the key: %t, shares the labels: %t; want both", name, sharesKey, sharesLabels)
		}
	}
	s := thing{Metadata: m()}
	k, l := sharing(s, o.Key, s.Labels)
	check("a struct", k, l)
	p := &thing{Metadata: m()}
	k, l = sharing(p, o.Key, p.Labels)
	check("a pointer", k, l)
	p = &thing{Metadata: m()}
	k, l = sharing[any](p, o.Key, p.Labels)
	check("a pointer in an interface", k, l)
	e := nested{base: base{m()}}
	k, l = sharing(e, o.Key, e.Labels)
	check("metadata in an unexported embedded struct", k, l)
	pod := &kubePod{objectMeta: om()}
	k, l = sharing(pod, o.Key, pod.Labels)
	check("a pointer to a Kubernetes type", k, l)
	pod = &kubePod{objectMeta: om()}
	k, l = sharing(*pod, o.Key, pod.Labels)
	check("a Kubernetes type", k, l)
}

func TestItemKeepsMetadataThatValueLacks(t *testing.T) {
	o := objectOf("ns", "a", "web")
	stripped := &thing{Metadata: listwatch.Metadata{Name: "other"}}
	for name, i := range map[string]interface{ Labels() map[string]string }{
		"no metadata": newItem(o, bare{}), "a nil pointer": newItem[*thing](o, nil),
		"a nil interface":          newItem[any](o, nil),
		"a struct in an interface": newItem[any](o, bare{}), "text": newItem(o, "text"),
		"a transformed value": newItem(o, stripped),
	} {
		if !maps.Equal(i.Labels(), o.Labels) {
			t.Errorf("%s: got labels %v, want %v", name, i.Labels(), o.Labels)
		}
	}
	if i := newItem(o, stripped); i.Key != o.Key || i.Version != o.Version {
		t.Errorf("got %s at %d, want %s at %d", i.Key, i.Version, o.Key, o.Version)
	}
	made := &Item[thing]{Value: thing{Metadata: listwatch.Metadata{Labels: o.Labels}}}
	if !maps.Equal(made.Labels(), o.Labels) {
		t.Errorf("an item without an object has labels %v, want its value's labels", made.Labels())
	}
}

func TestMetadataIsReadWithoutAllocating(t *testing.T) {
	s, p, pod := thing{}, &thing{}, &kubePod{}
	allocs := testing.AllocsPerRun(100, func() {
		_, _, _ = govalue.MetadataOf(&s), govalue.MetadataOf(&p), govalue.MetadataOf(&pod)
	})
	if allocs != 0 {
		t.Errorf("got %v allocations, want none", allocs)
	}
}

// A copyingValue returns a new copy of its labels from each call of GetLabels, as unstructured
// Kubernetes objects do.
type copyingValue struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
}

func (c *copyingValue) GetName() string              { return c.Metadata.Name }
func (c *copyingValue) GetNamespace() string         { return "" }
func (c *copyingValue) GetLabels() map[string]string { return maps.Clone(c.Metadata.Labels) }

func TestLabelsOutliveTheirObject(t *testing.T) {
	const text = `{"metadata":{"name":"a","labels":{"l":"v"}}}`
	labelsOf[*struct{ Other string }](t, text)
	labelsOf[thing](t, text)
	if i := labelsOf[*copyingValue](t, text); i.labels != nil {
		t.Errorf("the item holds a second copy of the labels: %v", i.labels)
	}
}

// labelsOf returns an item made from text. It checks that the item keeps its labels after
// the memory of the object was cleared.
func labelsOf[T any](t *testing.T, text string) *Item[T] {
	t.Helper()
	o, err := listwatch.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	value, err := govalue.Decode[T](o.Data)
	if err != nil {
		t.Fatal(err)
	}
	i := newItem(o, value)
	i.detach(o)
	clear(o.Labels)
	clear(o.Data)
	if got := i.Labels(); len(got) != 1 || got["l"] != "v" || i.Key.Name != "a" {
		t.Errorf("%T: %s has labels %v, want l=v on a", value, i.Key, got)
	}
	return i
}
