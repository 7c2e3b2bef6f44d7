// Package apistatus converts the errors of Kubernetes' libraries.
package apistatus

import (
	"errors"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubestatus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Invalid returns an error of status 422 with a cause for each of errs.
func Invalid(group, kind, name string, errs field.ErrorList) error {
	return Convert(apierrors.NewInvalid(schema.GroupKind{Group: group, Kind: kind}, name, errs))
}

// Undecodable returns the error for a body that should be an object of the given kind and version.
// The message is Kubernetes' own.
func Undecodable(kind, version, reason string) error {
	return &listwatch.Error{
		Code:    listwatch.Invalid,
		Message: fmt.Sprintf("%[1]s in version %[2]q cannot be handled as a %[1]s: %[3]s", kind, version, reason),
	}
}

// Convert returns err as a [listwatch.Error] if it has a Status, and otherwise err itself.
func Convert(err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	s := status.ErrStatus
	e := kubestatus.Status{Reason: string(s.Reason), Code: int(s.Code), Message: s.Message}.Err()
	e.Remote = false
	if d := s.Details; d != nil {
		e.Details = &listwatch.Details{
			Name: d.Name, Group: d.Group, Kind: d.Kind, UID: string(d.UID),
			RetryAfter: time.Duration(d.RetryAfterSeconds) * time.Second,
		}
		for _, c := range d.Causes {
			e.Details.Causes = append(e.Details.Causes,
				listwatch.Cause{Reason: string(c.Type), Message: c.Message, Field: c.Field})
		}
	}
	return e
}

// WithoutCode returns an error with only the message of err. Kubernetes' libraries make the text of
// a response of it.
func WithoutCode(err error) error {
	if e, ok := errors.AsType[*listwatch.Error](err); ok && e.Message != "" {
		return errors.New(e.Message)
	}
	return err
}
