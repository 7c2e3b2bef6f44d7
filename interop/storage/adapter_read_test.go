package storage

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apiserver/pkg/storage"

	"github.com/listwatch/listwatch"
)

// Get implements [kube.Interface].
func (s *Storage) Get(ctx context.Context, path string, o kube.GetOptions, out runtime.Object) error {
	object, err := s.get(ctx, path, o.ResourceVersion)
	switch {
	case err != nil:
		return err
	case object != nil:
		_, err := s.decode(ctx, object, out)
		return err
	case o.IgnoreNotFound:
		return runtime.SetZeroValue(out)
	}
	return kube.NewKeyNotFoundError(path, 0)
}

// get returns the object at path, or nil if it does not exist. If resourceVersion is set, the
// object is not older than that version. get then uses a list, because our stores support
// versions only in lists.
func (s *Storage) get(ctx context.Context, path, resourceVersion string) (*listwatch.Object, error) {
	key, err := s.keyOf(path)
	if err != nil {
		return nil, err
	}
	if resourceVersion == "" {
		return s.backend.Get(ctx, key)
	}
	var q listwatch.Query
	if _, err := s.setScope(&q, path, false); err != nil {
		return nil, err
	}
	if err := setStart(&q, resourceVersion); err != nil {
		return nil, err
	}
	page, err := s.backend.List(ctx, q)
	if err != nil || len(page.Items) == 0 {
		return nil, kubeError(err)
	}
	return page.Items[0], nil
}

// GetList implements [kube.Interface].
func (s *Storage) GetList(ctx context.Context, path string, o kube.ListOptions, list runtime.Object) error {
	q, prefix, err := s.listQuery(path, o)
	if err != nil {
		return err
	}
	page, err := s.backend.List(ctx, q)
	if err != nil {
		return s.listError(err, prefix)
	}
	if err := s.appendTo(ctx, list, page.Items); err != nil {
		return err
	}
	token, err := s.kubeToken(page.Continue, prefix)
	if err != nil {
		return err
	}
	var remaining *int64
	if token != "" && page.Remaining >= 0 {
		n := int64(page.Remaining)
		remaining = &n
	}
	return versioner.UpdateList(list, uint64(page.Version), token, remaining)
}

// appendTo decodes objects into the items of list. It stops at the first object that cannot
// be decoded.
func (s *Storage) appendTo(ctx context.Context, list runtime.Object, objects []*listwatch.Object) error {
	ptr, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	items, err := conversion.EnforcePtr(ptr)
	if err != nil || items.Kind() != reflect.Slice {
		return fmt.Errorf("the items of %T are not a slice: %w", list, err)
	}
	if items.IsNil() {
		items.Set(reflect.MakeSlice(items.Type(), 0, len(objects)))
	}
	for _, o := range objects {
		item := s.New()
		if _, err := s.decode(ctx, o, item); err != nil {
			return err
		}
		items.Set(reflect.Append(items, reflect.ValueOf(item).Elem()))
	}
	return nil
}
