package storage

import (
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/listwatch/listwatch"
)

// kubeError returns an error of ours as the Status that our server would send; other errors as they are.
func kubeError(err error) error {
	e, ok := errors.AsType[*listwatch.Error](err)
	if !ok {
		return err
	}
	data, err := json.Marshal(listwatch.StatusOf(e))
	if err != nil {
		return err
	}
	status := new(apierrors.StatusError)
	if err := json.Unmarshal(data, &status.ErrStatus); err != nil {
		return err
	}
	return status
}

// listError is kubeError for a list of what is beneath prefix: its fresh token is one of theirs.
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

// statusOf returns err as the object of an ERROR event.
func statusOf(err error) *metav1.Status {
	if s, ok := errors.AsType[*apierrors.StatusError](kubeError(err)); ok {
		return &s.ErrStatus
	}
	return &apierrors.NewInternalError(err).ErrStatus
}
