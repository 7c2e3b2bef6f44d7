package store

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// The types of the members of Kubernetes' ObjectMeta (k8s.io/apimachinery/pkg/apis/meta/v1). One object with a member of another type
// makes the whole list unreadable for clients that decode into that: none may be written. Members that it does not have are nobody's
// business, and null is what is not there.

// A shape says of a value, compact JSON and not null, how it is not what it must be; nil: it is.
type shape func(raw []byte) *mismatch

// A mismatch is where a value is not what it must be, below the one that was looked at, and what that must be.
type mismatch struct {
	path, want string
	got        []byte
}

func (m *mismatch) below(step string) *mismatch {
	m.path = step + m.path
	return m
}

var objectMeta = members(map[string]shape{
	"annotations": stringMap, "creationTimestamp": timestamp, "deletionGracePeriodSeconds": integer, "deletionTimestamp": timestamp,
	"finalizers": list(text), "generateName": text, "generation": integer, "labels": stringMap,
	"managedFields": list(members(map[string]shape{
		"apiVersion": text, "fieldsType": text, "manager": text, "operation": text, "subresource": text, "time": timestamp,
	})),
	"name": text, "namespace": text,
	"ownerReferences": list(members(map[string]shape{
		"apiVersion": text, "blockOwnerDeletion": boolean, "controller": boolean, "kind": text, "name": text, "uid": text,
	})),
	"resourceVersion": text, "selfLink": text, "uid": text,
})

// CheckTypes returns an error of code Invalid where object, compact JSON, has a kind, an apiVersion or a member of metadata that is not of
// the type that Kubernetes gives it, or is of another kind than r. What is not there is not missed.
func (r CollectionSpec) CheckTypes(object []byte) error {
	all, err := rawjson.Split(object)
	if err != nil {
		return &listwatch.Error{Code: listwatch.Invalid, Message: "the object", Err: err}
	}
	d := &document{members: all}
	if err := r.WithDefaults().setType(d); err != nil {
		return err
	}
	if meta := find(all, "metadata"); meta != nil {
		return checkMeta(meta.Value)
	}
	return nil
}

// checkMeta checks the types of metadata.
func checkMeta(raw []byte) error {
	if isNull(raw) {
		return nil
	}
	if m := objectMeta(raw); m != nil {
		return badRequest("metadata%s: want %s, got %s", m.path, m.want, shown(m.got))
	}
	return nil
}

func isNull(raw []byte) bool { return string(raw) == "null" }

func text(raw []byte) *mismatch {
	if raw[0] != '"' {
		return &mismatch{want: "a string", got: raw}
	}
	return nil
}

func boolean(raw []byte) *mismatch {
	if raw[0] != 't' && raw[0] != 'f' {
		return &mismatch{want: "true or false", got: raw}
	}
	return nil
}

func integer(raw []byte) *mismatch {
	if _, err := strconv.ParseInt(string(raw), 10, 64); err != nil {
		return &mismatch{want: "a whole number of 64 bits", got: raw}
	}
	return nil
}

func timestamp(raw []byte) *mismatch {
	s, err := rawjson.String(raw)
	if err == nil {
		_, err = time.Parse(time.RFC3339, s)
	}
	if err != nil {
		return &mismatch{want: `a time such as "2006-01-02T15:04:05Z"`, got: raw}
	}
	return nil
}

func stringMap(raw []byte) (bad *mismatch) {
	if raw[0] != '{' {
		return &mismatch{want: "an object of strings", got: raw}
	}
	_ = rawjson.Members(raw, func(name string, value rawjson.Span) error {
		if v := value.Of(raw); bad == nil && !isNull(v) && v[0] != '"' {
			bad = text(v).below("[" + strconv.Quote(name) + "]")
		}
		return nil
	})
	return bad
}

func list(of shape) shape {
	return func(raw []byte) (bad *mismatch) {
		if raw[0] != '[' {
			return &mismatch{want: "a list", got: raw}
		}
		i := 0
		_ = rawjson.Elements(raw, func(value rawjson.Span) error {
			if v := value.Of(raw); bad == nil && !isNull(v) {
				if bad = of(v); bad != nil {
					bad = bad.below("[" + strconv.Itoa(i) + "]")
				}
			}
			i++
			return nil
		})
		return bad
	}
}

func members(shapes map[string]shape) shape {
	return func(raw []byte) (bad *mismatch) {
		if raw[0] != '{' {
			return &mismatch{want: "an object", got: raw}
		}
		_ = rawjson.Members(raw, func(name string, value rawjson.Span) error {
			of := shapes[name]
			if v := value.Of(raw); bad == nil && of != nil && !isNull(v) {
				if bad = of(v); bad != nil {
					bad = bad.below("." + name)
				}
			}
			return nil
		})
		return bad
	}
}

// shown tells what a value is, for a message.
func shown(raw []byte) string {
	const most = 40
	switch {
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "a list"
	case len(raw) > most:
		return fmt.Sprintf("%s…", bytes.ToValidUTF8(raw[:most], nil))
	}
	return string(raw)
}
