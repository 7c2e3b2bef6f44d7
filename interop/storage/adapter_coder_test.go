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

// A coder converts objects between Kubernetes' types and ours. Each watch has its own copy,
// because a watch keeps the transformer that it started with.
type coder struct {
	Options
	resource store.CollectionSpec
	// transformer changes the stored bytes, for example by encryption. If nil, the JSON is
	// stored unchanged.
	transformer value.Transformer
}

// A sealedObject is the stored form of an object if there is a transformer. It contains the
// metadata that our store needs, and the transformed bytes.
type sealedObject struct {
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

// encode returns the JSON of o for the store, without a version and a selfLink.
func (c *coder) encode(o runtime.Object) ([]byte, error) {
	o = o.DeepCopyObject()
	if err := versioner.PrepareObjectForStorage(o); err != nil {
		return nil, err
	}
	data, err := runtime.Encode(c.Codec, o)
	return bytes.TrimSpace(data), err
}

// newDraft returns the draft of o for the store, and the JSON of o without transformation.
func (c *coder) newDraft(ctx context.Context, key listwatch.Key, o runtime.Object) (*store.Draft, []byte, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return nil, nil, err
	}
	plain, err := c.encode(o)
	if err != nil {
		return nil, nil, err
	}
	d := &store.Draft{Key: key, Labels: m.GetLabels(), Fields: c.resource.ReadFields(plain)}
	stored := plain
	if c.transformer != nil {
		if stored, err = c.seal(ctx, d, plain); err != nil {
			return nil, nil, err
		}
	}
	span, err := rawjson.Find(stored, "metadata")
	if err != nil || span.Empty() {
		return nil, nil, fmt.Errorf("%s has no metadata: %w", stored, err)
	}
	at := span.Start + len("{")
	d.Before = append(bytes.Clone(stored[:at]), `"resourceVersion":`...)
	if stored[at] != '}' {
		d.After = []byte(",")
	}
	d.After = append(d.After, stored[at:]...)
	return d, plain, nil
}

// seal returns the JSON of a sealedObject with the metadata of d and the transformed bytes of
// plain.
func (c *coder) seal(ctx context.Context, d *store.Draft, plain []byte) ([]byte, error) {
	secret, err := c.transformer.TransformToStorage(ctx, plain, value.DefaultContext(c.path(d.Key)))
	if err != nil {
		return nil, kube.NewInternalError(err)
	}
	return json.Marshal(sealedObject{
		APIVersion: c.resource.APIVersion, Kind: c.resource.Kind, Sealed: secret,
		Metadata: sealedMetadata{Name: d.Key.Name, Namespace: d.Key.Namespace, Labels: d.Labels},
	})
}

// decode decodes o into out. stale is true if the transformer would now store other bytes for
// the same object.
func (c *coder) decode(ctx context.Context, o *listwatch.Object, out runtime.Object) (stale bool, err error) {
	plain := o.Data
	if c.transformer != nil {
		var stored sealedObject
		if err := json.Unmarshal(o.Data, &stored); err != nil {
			return false, err
		}
		key := c.path(o.Key)
		if plain, stale, err = c.transformer.TransformFromStorage(ctx, stored.Sealed, value.DefaultContext(key)); err !=
			nil {
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
