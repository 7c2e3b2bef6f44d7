package departures

import (
	"encoding/binary"
	"slices"

	"github.com/listwatch/listwatch"
)

// Attributes are the part of an object, except its name, that selectors see. Departures share equal
// attributes.
type Attributes struct {
	// text is the namespace, the labels and the fields, each string and map with its length.
	text  string
	users int // the number of departures that have them
}

// An attributesEncoder reuses its memory.
type attributesEncoder struct {
	text []byte
	keys []string
}

// encode returns the text of the attributes of o. It is valid until the next call.
func (e *attributesEncoder) encode(o *listwatch.Object) []byte {
	e.text = e.text[:0]
	e.string(o.Key.Namespace)
	e.stringMap(o.Labels)
	e.stringMap(o.Fields)
	return e.text
}

func (e *attributesEncoder) string(s string) {
	e.text = append(binary.AppendUvarint(e.text, uint64(len(s))), s...)
}

func (e *attributesEncoder) stringMap(m map[string]string) {
	e.text = binary.AppendUvarint(e.text, uint64(len(m)))
	e.keys = e.keys[:0]
	for k := range m {
		e.keys = append(e.keys, k)
	}
	slices.Sort(e.keys)
	for _, k := range e.keys {
		e.string(k)
		e.string(m[k])
	}
	clear(e.keys) // keep no strings of the object
}

// Object returns an object with the attributes a.
func (a *Attributes) Object(name string) *listwatch.Object {
	text := attributesText(a.text)
	namespace := text.next()
	return &listwatch.Object{
		Key: listwatch.Key{Namespace: namespace, Name: name}, Labels: text.nextMap(), Fields: text.nextMap(),
	}
}

// Namespace returns the namespace of the object.
func (a *Attributes) Namespace() string {
	text := attributesText(a.text)
	return text.next()
}

// An attributesText is the part of a text of attributes that has not been decoded yet.
type attributesText string

func (t *attributesText) number() int {
	n, size := binary.Uvarint([]byte((*t)[:min(len(*t), binary.MaxVarintLen64)]))
	*t = (*t)[size:]
	return int(n)
}

func (t *attributesText) next() string {
	n := t.number()
	s := (*t)[:n]
	*t = (*t)[n:]
	return string(s)
}

func (t *attributesText) nextMap() map[string]string {
	n := t.number()
	m := make(map[string]string, n)
	for range n {
		k := t.next()
		m[k] = t.next()
	}
	return m
}
