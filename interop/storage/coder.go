package storage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/store"
)

var versioner kube.APIObjectVersioner

// A coder turns their objects into ours and back. A watch has a copy, which keeps the transformer that it began with.
type coder struct {
	Options
	resource store.CollectionSpec
	// transformer changes the bytes that are kept, as encryption does; nil: they are the object's JSON.
	transformer value.Transformer
}

// A sealed object is what is kept where there is a transformer: what our store must see of it, and the bytes that it must not.
type sealed struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   sealedMetadata `json:"metadata"`
	Sealed     []byte         `json:"sealed"`
}

type sealedMetadata struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// encode returns the JSON of o as it is kept: without a version and a selfLink.
func (c *coder) encode(o runtime.Object) ([]byte, error) {
	o = o.DeepCopyObject()
	if err := versioner.PrepareObjectForStorage(o); err != nil {
		return nil, err
	}
	data, err := runtime.Encode(c.Codec, o)
	return bytes.TrimSpace(data), err
}

// draft returns o on its way to the store, and its JSON.
func (c *coder) draft(ctx context.Context, key listwatch.Key, o runtime.Object) (*store.Draft, []byte, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return nil, nil, err
	}
	plain, err := c.encode(o)
	if err != nil {
		return nil, nil, err
	}
	d := &store.Draft{Key: key, Labels: m.GetLabels(), Fields: c.resource.ReadFields(plain)}
	kept := plain
	if c.transformer != nil {
		if kept, err = c.seal(ctx, d, plain); err != nil {
			return nil, nil, err
		}
	}
	span, err := rawjson.Find(kept, "metadata")
	if err != nil || span.Empty() {
		return nil, nil, fmt.Errorf("%s has no metadata: %w", kept, err)
	}
	at := span.Start + len("{")
	d.Before = append(bytes.Clone(kept[:at]), `"resourceVersion":`...)
	if kept[at] != '}' {
		d.After = []byte(",")
	}
	d.After = append(d.After, kept[at:]...)
	return d, plain, nil
}

func (c *coder) seal(ctx context.Context, d *store.Draft, plain []byte) ([]byte, error) {
	secret, err := c.transformer.TransformToStorage(ctx, plain, value.DefaultContext(c.path(d.Key)))
	if err != nil {
		return nil, kube.NewInternalError(err)
	}
	return json.Marshal(sealed{
		APIVersion: c.resource.APIVersion, Kind: c.resource.Kind, Sealed: secret,
		Metadata: sealedMetadata{Name: d.Key.Name, Namespace: d.Key.Namespace, Labels: d.Labels},
	})
}

// decode reads o into out. stale says that the transformer would keep it otherwise today.
func (c *coder) decode(ctx context.Context, o *listwatch.Object, out runtime.Object) (stale bool, err error) {
	plain := o.Data
	if c.transformer != nil {
		var kept sealed
		if err := json.Unmarshal(o.Data, &kept); err != nil {
			return false, err
		}
		key := c.path(o.Key)
		if plain, stale, err = c.transformer.TransformFromStorage(ctx, kept.Sealed, value.DefaultContext(key)); err != nil {
			return false, kube.NewInternalError(fmt.Errorf("unable to transform key %q: %w", key, err))
		}
	}
	return stale, c.decodePlain(plain, o.Version, out)
}

func (c *coder) decodePlain(plain []byte, v listwatch.Version, out runtime.Object) error {
	if _, _, err := c.Codec.Decode(plain, nil, out); err != nil {
		return err
	}
	return versioner.UpdateObject(out, uint64(v))
}
