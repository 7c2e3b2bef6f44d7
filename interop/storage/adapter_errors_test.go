package storage

import (
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubestatus"
)

// kubeError converts our errors to the Status that our server would send. It returns all
// other errors unchanged.
func kubeError(err error) error {
	e, ok := errors.AsType[*listwatch.Error](err)
	if !ok {
		return err
	}
	data, err := json.Marshal(kubestatus.Of(e))
	if err != nil {
		return err
	}
	status := new(apierrors.StatusError)
	if err := json.Unmarshal(data, &status.ErrStatus); err != nil {
		return err
	}
	return status
}

// listError is like kubeError, for a list below prefix. It also converts the continue token
// of the error.
func (c *coder) listError(err error, prefix string) error {
	err = kubeError(err)
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	meta := &status.ErrStatus.ListMeta
	token, tokenErr := c.kubeToken(meta.Continue, prefix)
	if tokenErr != nil {
		return tokenErr
	}
	meta.Continue = token
	return status
}

// statusOf returns the object of an ERROR event for err.
func statusOf(err error) *metav1.Status {
	if s, ok := errors.AsType[*apierrors.StatusError](kubeError(err)); ok {
		return &s.ErrStatus
	}
	return &apierrors.NewInternalError(err).ErrStatus
}
