package store

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// objectMeta checks the types of Kubernetes' ObjectMeta
// (k8s.io/apimachinery/pkg/apis/meta/v1). One object with a member of another type would make
// whole lists unreadable for clients that decode into ObjectMeta. Members that ObjectMeta
// does not have may be of any type, and null counts as absent.
var objectMeta = checkMembers(map[string]typeCheck{
	"annotations": checkStringMap, "creationTimestamp": checkTime, "deletionGracePeriodSeconds": checkInteger,
	"deletionTimestamp": checkTime,
	"finalizers":        checkElements(checkString), "generateName": checkString, "generation": checkInteger,
	"labels": checkStringMap,
	"managedFields": checkElements(checkMembers(map[string]typeCheck{
		"apiVersion": checkString, "fieldsType": checkString, "manager": checkString, "operation": checkString,
		"subresource": checkString, "time": checkTime,
	})),
	"name": checkString, "namespace": checkString,
	"ownerReferences": checkElements(checkMembers(map[string]typeCheck{
		"apiVersion": checkString, "blockOwnerDeletion": checkBoolean, "controller": checkBoolean, "kind": checkString,
		"name": checkString, "uid": checkString,
	})),
	"resourceVersion": checkString, "selfLink": checkString, "uid": checkString,
})

// CheckTypes returns an error of code Invalid if d has another kind or apiVersion than s, or a
// member of metadata that does not have the type of Kubernetes' ObjectMeta. Members may be absent.
func (s CollectionSpec) CheckTypes(d *Document) error {
	if err := s.WithDefaults().checkType(&d.parts); err != nil {
		return err
	}
	if metadata := findMember(d.parts.members, "metadata"); metadata != nil {
		return checkMetadataTypes(metadata.Value)
	}
	return nil
}

func checkMetadataTypes(raw []byte) error {
	if isNull(raw) {
		return nil
	}
	if m := objectMeta(raw); m != nil {
		return badRequest("metadata%s: want %s, got %s", m.path, m.want, shorten(m.got))
	}
	return nil
}

// A typeCheck returns nil if raw, which is compact JSON and not null, has the right type.
type typeCheck func(raw []byte) *mismatch

// A mismatch is a value of a wrong type.
type mismatch struct {
	// path leads from the checked value to the value of a wrong type, such as ".a[0]".
	path string
	want string
	got  []byte
}

// below returns m with step prepended to its path.
func (m *mismatch) below(step string) *mismatch {
	m.path = step + m.path
	return m
}

func checkString(raw []byte) *mismatch {
	if raw[0] != '"' {
		return &mismatch{want: "a string", got: raw}
	}
	return nil
}

func checkBoolean(raw []byte) *mismatch {
	if raw[0] != 't' && raw[0] != 'f' {
		return &mismatch{want: "true or false", got: raw}
	}
	return nil
}

func checkInteger(raw []byte) *mismatch {
	if _, err := strconv.ParseInt(string(raw), 10, 64); err != nil {
		return &mismatch{want: "a 64-bit integer", got: raw}
	}
	return nil
}

func checkTime(raw []byte) *mismatch {
	s, err := rawjson.String(raw)
	if err == nil {
		_, err = time.Parse(time.RFC3339, s)
	}
	if err != nil {
		return &mismatch{want: `a time such as "2006-01-02T15:04:05Z"`, got: raw}
	}
	return nil
}

func checkStringMap(raw []byte) (bad *mismatch) {
	if raw[0] != '{' {
		return &mismatch{want: "an object of strings", got: raw}
	}
	_ = rawjson.Members(raw, func(name string, value rawjson.Span) error {
		if v := value.Of(raw); bad == nil && !isNull(v) && v[0] != '"' {
			bad = checkString(v).below("[" + strconv.Quote(name) + "]")
		}
		return nil
	})
	return bad
}

// checkElements returns a typeCheck for lists whose elements all have to pass the given check.
func checkElements(check typeCheck) typeCheck {
	return func(raw []byte) (bad *mismatch) {
		if raw[0] != '[' {
			return &mismatch{want: "a list", got: raw}
		}
		i := 0
		_ = rawjson.Elements(raw, func(value rawjson.Span) error {
			if v := value.Of(raw); bad == nil && !isNull(v) {
				if bad = check(v); bad != nil {
					bad = bad.below("[" + strconv.Itoa(i) + "]")
				}
			}
			i++
			return nil
		})
		return bad
	}
}

// checkMembers returns a typeCheck for objects. It applies the typeCheck with the name of a member
// to that member, and accepts a member for which there is no typeCheck.
func checkMembers(checks map[string]typeCheck) typeCheck {
	return func(raw []byte) (bad *mismatch) {
		if raw[0] != '{' {
			return &mismatch{want: "an object", got: raw}
		}
		_ = rawjson.Members(raw, func(name string, value rawjson.Span) error {
			check := checks[name]
			if v := value.Of(raw); bad == nil && check != nil && !isNull(v) {
				if bad = check(v); bad != nil {
					bad = bad.below("." + name)
				}
			}
			return nil
		})
		return bad
	}
}

// shorten returns a JSON value for a message: its first bytes, or its type if it has members or
// elements.
func shorten(raw []byte) string {
	const maxLength = 40
	switch {
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "a list"
	case len(raw) > maxLength:
		return fmt.Sprintf("%s…", bytes.ToValidUTF8(raw[:maxLength], nil))
	}
	return string(raw)
}
