package adapters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"unicode"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// A kubeStore writes to one namespace of the server.
type kubeStore struct {
	*KubeServer
	namespace string

	mu       sync.Mutex
	versions map[string]string // current versions of the existing objects by name; guarded by mu
}

// object contains the fields of an object that the store reads.
type object struct {
	Metadata struct{ Name, Namespace, ResourceVersion string }
}

// Put creates or replaces an object. A replacement contains the current version, which servers
// require for custom resources.
func (k *kubeStore) Put(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
	body, err := k.body(key, data)
	if err != nil {
		return 0, err
	}
	const tries = 100 // another writer of the case may change the same object between two attempts
	for range tries {
		var version string
		if version, err = k.write(ctx, key.Name, body); err == nil {
			return listwatch.ParseVersion(version)
		}
		if !errors.Is(err, listwatch.AlreadyExists) && !errors.Is(err, listwatch.Conflict) &&
			!errors.Is(err, listwatch.NotFound) {
			return 0, err
		}
		if err := k.refresh(ctx, key.Name); err != nil {
			return 0, err
		}
	}
	return 0, err
}

// write creates the object, or replaces it if it is known to exist.
func (k *kubeStore) write(ctx context.Context, name string, body map[string]any) (version string, err error) {
	method, at := "POST", k.resource.path(k.namespace)
	metadata := body["metadata"].(map[string]any)
	delete(metadata, "resourceVersion")
	if last := k.version(name); last != "" {
		method, at = "PUT", at+"/"+name
		metadata["resourceVersion"] = last
	}
	var written object
	if err := k.rest.do(ctx, method, at, nil, body, &written); err != nil {
		return "", err
	}
	k.setVersion(name, written.Metadata.ResourceVersion)
	return written.Metadata.ResourceVersion, nil
}

// refresh fetches the current version of an object.
func (k *kubeStore) refresh(ctx context.Context, name string) error {
	var now object
	err := k.rest.do(ctx, "GET", k.resource.path(k.namespace)+"/"+name, nil, nil, &now)
	if err != nil && !errors.Is(err, listwatch.NotFound) {
		return err
	}
	k.setVersion(name, now.Metadata.ResourceVersion)
	return nil
}

// body converts data, an object with metadata and a spec, to the object that the store sends.
func (k *kubeStore) body(key listwatch.Key, data []byte) (map[string]any, error) {
	if key.Namespace != "default" {
		return nil, fmt.Errorf("the case writes to %s, but may only write to namespace default", key)
	}
	var in struct {
		Metadata map[string]any
		Spec     map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	if in.Metadata == nil {
		return nil, fmt.Errorf("%s has no metadata", data)
	}
	in.Metadata["namespace"] = k.namespace
	body := map[string]any{"apiVersion": k.resource.apiVersion(), "kind": k.resource.kind, "metadata": in.Metadata}
	if k.resource.String() == "configmaps" {
		body["data"] = stringValues(in.Spec)
	} else {
		body["spec"] = in.Spec
	}
	return body, nil
}

// stringValues returns the values of a spec as strings for a ConfigMap.
func stringValues(spec map[string]json.RawMessage) map[string]string {
	all := map[string]string{}
	for name, value := range spec {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		all[strings.Map(keyRune, name)] = text
	}
	return all
}

// keyRune replaces characters that a key of a ConfigMap may not contain.
func keyRune(r rune) rune {
	if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r)) {
		return r
	}
	return '_'
}

// Delete deletes an object. The response to a DELETE may lack the version of the deletion,
// so Delete reads it from a watch.
func (k *kubeStore) Delete(ctx context.Context, key listwatch.Key) (listwatch.Version, error) {
	before := k.version(key.Name)
	if before == "" {
		return 0, &listwatch.Error{Code: listwatch.NotFound, Message: key.String()}
	}
	if err := k.rest.do(ctx, "DELETE", k.resource.path(k.namespace)+"/"+key.Name, nil, nil, nil); err != nil {
		return 0, err
	}
	k.setVersion(key.Name, "")
	return k.deletedAt(ctx, key.Name, before)
}

// deletedAt returns the version at which an object was deleted. before is an older version of the
// object.
func (k *kubeStore) deletedAt(ctx context.Context, name, before string) (listwatch.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	query := url.Values{"watch": {"1"}, "resourceVersion": {before}, "fieldSelector": {"metadata.name=" + name}}
	resp, err := k.rest.send(ctx, "GET", k.resource.path(k.namespace), query, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	events := framing.JSON{}.NewDecoder(resp.Body, 0)
	for {
		e, err := events.Decode()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, fmt.Errorf("watch for the version of the deletion: %w", err)
		}
		if e.Type != "DELETED" {
			continue
		}
		var gone object
		if err := json.Unmarshal(e.Object, &gone); err != nil {
			return 0, err
		}
		return listwatch.ParseVersion(gone.Metadata.ResourceVersion)
	}
}

func (k *kubeStore) version(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.versions[name]
}

func (k *kubeStore) setVersion(name, version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.versions[name] = version
}
