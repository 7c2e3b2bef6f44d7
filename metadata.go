package listwatch

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// Metadata makes a Go type watchable: embed it with the tag `json:"metadata"`. Its members are a
// subset of Kubernetes' ObjectMeta. The store sets UID, ResourceVersion, Generation and
// CreationTimestamp.
type Metadata struct {
	Name              string            `json:"name,omitempty"`
	GenerateName      string            `json:"generateName,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	Generation        int64             `json:"generation,omitempty"`
	CreationTimestamp *time.Time        `json:"creationTimestamp,omitempty"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	Finalizers        []string          `json:"finalizers,omitempty"`
	OwnerReferences   []OwnerReference  `json:"ownerReferences,omitempty"`
}

// An OwnerReference names an owner of an object. Kubernetes deletes the object when all its owners
// have been deleted. An owner is in the same namespace as the object, or in no namespace.
type OwnerReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	// Controller is true for the owner that manages the object. At most one owner does.
	Controller bool `json:"controller,omitempty"`
	// BlockOwnerDeletion is true if Kubernetes must delete the object before an owner that is
	// deleted in the foreground.
	BlockOwnerDeletion bool `json:"blockOwnerDeletion,omitempty"`
}

// Key returns the namespace and name of the object.
func (m *Metadata) Key() Key { return Key{Namespace: m.Namespace, Name: m.Name} }

// Version returns the version of the object, or zero if ResourceVersion is empty or not a decimal
// number.
func (m *Metadata) Version() Version {
	v, err := ParseVersion(m.ResourceVersion)
	if err != nil {
		return 0
	}
	return v
}

// Decode decodes the JSON of o into a T. It cannot decode the object of a collection with a
// [Description.Encoding].
func Decode[T any](o *Object) (T, error) {
	var t T
	if err := json.Unmarshal(o.Data, &t); err != nil {
		if len(o.Data) > 0 && o.Data[0] != '{' {
			err = fmt.Errorf("the object is not JSON, so its collection probably has an Encoding: %w", err)
		}
		return t, &Error{Code: Corrupt, Op: "decode " + o.Key.String(), Err: err}
	}
	return t, nil
}

// Encode returns the JSON of value, for a [Writer] or for [NewObject]. It is like json.Marshal, but
// leaves <, > and & in strings as they are.
func Encode(value any) ([]byte, error) {
	data, err := rawjson.Encode(value)
	if err != nil {
		return nil, &Error{Code: Invalid, Message: fmt.Sprintf("encode %T", value), Err: err}
	}
	return data, nil
}
