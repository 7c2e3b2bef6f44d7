package storage

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	kube "k8s.io/apiserver/pkg/storage"

	"github.com/listwatch/listwatch"
)

// listQuery returns the query for a list, and the path prefix of the objects to list.
func (c *coder) listQuery(path string, o kube.ListOptions) (q listwatch.Query, prefix string, err error) {
	if prefix, err = c.setSelection(&q, path, o); err != nil {
		return q, "", err
	}
	exact, from, err := kube.ValidateListOptions(prefix, versioner, o)
	switch {
	case err != nil:
	case from != "":
		q.Continue = c.continueToken(from, exact)
	case exact > 0:
		q.Start, q.Match, q.Version = listwatch.StartAt, listwatch.MatchExact, listwatch.Version(exact)
	default:
		err = setStart(&q, o.ResourceVersion)
	}
	q.Limit = int(o.Predicate.Limit)
	return q, prefix, err
}

// watchQuery returns the query for a watch.
func (c *coder) watchQuery(path string, o kube.ListOptions) (q listwatch.Query, err error) {
	if _, err = c.setSelection(&q, path, o); err != nil {
		return q, err
	}
	if send := o.SendInitialEvents; send != nil && *send {
		q.InitialEvents, q.Bookmarks = listwatch.InitialEventsYes, o.Predicate.AllowWatchBookmarks
	} else if send != nil {
		q.InitialEvents = listwatch.InitialEventsNo
	}
	return q, setStart(&q, o.ResourceVersion)
}

// setStart sets the start of q.
func setStart(q *listwatch.Query, resourceVersion string) error {
	version, err := versioner.ParseResourceVersion(resourceVersion)
	switch {
	case err != nil:
		return apierrors.NewBadRequest(err.Error())
	case version > 0:
		q.Start, q.Version = listwatch.StartAt, listwatch.Version(version)
	case resourceVersion != "":
		q.Start = listwatch.StartAny
	}
	return nil
}

// setSelection sets the selectors and the scope of q. It passes the text of selectors to
// our parser. Selectors without a text form are refused, because evaluating them here would
// not test our code.
func (c *coder) setSelection(q *listwatch.Query, path string, o kube.ListOptions) (prefix string, err error) {
	label, field := o.Predicate.Label, o.Predicate.Field
	if label == labels.Nothing() || field == fields.Nothing() {
		return "", fmt.Errorf("a selector that selects nothing has no text form")
	}
	if label != nil {
		if q.Labels, err = listwatch.ParseLabelSelector(label.String()); err != nil {
			return "", kubeError(err)
		}
	}
	if field != nil {
		if q.Fields, err = listwatch.ParseFieldSelector(field.String()); err != nil {
			return "", kubeError(err)
		}
	}
	return c.setScope(q, path, o.Recursive)
}
