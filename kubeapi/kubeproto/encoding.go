package kubeproto

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/kubeapi/protobody"
)

// Encoding is the encoding of Kubernetes' Protocol Buffers.
type Encoding struct{}

var _ framing.ListEncoding = Encoding{}

// MediaType implements [framing.ListEncoding].
func (Encoding) MediaType() string { return protobody.MediaType }

// Read implements [listwatch.Encoding].
func (Encoding) Read(data []byte) (*listwatch.Object, error) {
	o, err := read(data)
	if err != nil && listwatch.CodeOf(err) == listwatch.Unknown {
		err = &listwatch.Error{Code: listwatch.Invalid, Op: "parse object", Err: err}
	}
	return o, err
}

func read(data []byte) (*listwatch.Object, error) {
	parsed, err := parse(data)
	if err != nil {
		return nil, err
	}
	o := &listwatch.Object{Data: data}
	var name, namespace, version field
	for f, err := range fields(parsed.metadata.value) {
		if err != nil {
			return nil, err
		}
		switch f.number {
		case nameField:
			err = name.set(f)
		case namespaceField:
			err = namespace.set(f)
		case versionField:
			err = version.set(f)
		case labelsField:
			if o.Labels == nil {
				o.Labels = make(map[string]string)
			}
			err = readEntry(o.Labels, f)
		}
		if err != nil {
			return nil, err
		}
	}
	if !utf8.Valid(name.value) || !utf8.Valid(namespace.value) {
		return nil, errNotUTF8
	}
	o.Key = listwatch.Key{Namespace: string(namespace.value), Name: string(name.value)}
	if o.Version, err = listwatch.ParseVersion(string(version.value)); err != nil {
		return nil, &listwatch.Error{Code: listwatch.Unsupported, Op: "parse object", Err: err}
	}
	return o, nil
}

var errNotUTF8 = errors.New("a name or a label is not valid UTF-8")

// readEntry adds f, an entry of a map of strings, to m.
func readEntry(m map[string]string, f field) error {
	var entry, key, value field
	if err := entry.set(f); err != nil {
		return err
	}
	for f, err := range fields(entry.value) {
		if err == nil && f.number == 1 {
			err = key.set(f)
		} else if err == nil && f.number == 2 {
			err = value.set(f)
		}
		if err != nil {
			return err
		}
	}
	if !utf8.Valid(key.value) || !utf8.Valid(value.value) {
		return errNotUTF8
	}
	m[string(key.value)] = string(value.value)
	return nil
}

// Fields implements [listwatch.Encoding], for the kinds that [protobody.Fields] knows. All values
// of other kinds are absent.
func (Encoding) Fields(data []byte, paths []string) []string {
	o, err := parse(data)
	if err != nil {
		return make([]string, len(paths))
	}
	return protobody.Fields(string(o.apiVersion), string(o.kind), o.raw.value, paths)
}

// WithVersion implements [listwatch.Encoding].
func (Encoding) WithVersion(data []byte, v listwatch.Version) []byte {
	o, err := parse(data)
	if err != nil {
		panic(fmt.Sprintf("kubeproto: WithVersion of data that Read refuses: %v", err))
	}
	metadata := o.metadata.value
	start, end := len(metadata), len(metadata)
	for f := range fields(metadata) {
		if f.number == versionField {
			start, end = f.start, f.end
		}
	}
	return o.withMetadata(metadata[:start], appendBytes(nil, versionField, v.String()), metadata[end:])
}
