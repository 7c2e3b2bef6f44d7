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

// Put creates or replaces an object. A replacement contains the previous version, which
// servers require for custom resources.
func (s *kubeStore) Put(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
	body, err := s.body(key, data)
	if err != nil {
		return 0, err
	}
	const tries = 100 // another writer of the case may change the same object between two attempts
	for range tries {
		var version string
		if version, err = s.write(ctx, key.Name, body); err == nil {
			return listwatch.ParseVersion(version)
		}
		if !errors.Is(err, listwatch.AlreadyExists) && !errors.Is(err, listwatch.Conflict) && !errors.Is(err, listwatch.NotFound) {
			return 0, err
		}
		if err := s.refresh(ctx, key.Name); err != nil {
			return 0, err
		}
	}
	return 0, err
}

// write creates the object, or replaces it if it is known to exist.
func (s *kubeStore) write(ctx context.Context, name string, body map[string]any) (version string, err error) {
	method, at := "POST", s.resource.path(s.namespace)
	metadata := body["metadata"].(map[string]any)
	delete(metadata, "resourceVersion")
	if last := s.version(name); last != "" {
		method, at = "PUT", at+"/"+name
		metadata["resourceVersion"] = last
	}
	var written object
	if err := s.rest.do(ctx, method, at, nil, body, &written); err != nil {
		return "", err
	}
	s.setVersion(name, written.Metadata.ResourceVersion)
	return written.Metadata.ResourceVersion, nil
}

// refresh fetches the current version of an object.
func (s *kubeStore) refresh(ctx context.Context, name string) error {
	var now object
	err := s.rest.do(ctx, "GET", s.resource.path(s.namespace)+"/"+name, nil, nil, &now)
	if err != nil && !errors.Is(err, listwatch.NotFound) {
		return err
	}
	s.setVersion(name, now.Metadata.ResourceVersion)
	return nil
}

// body converts data, an object with metadata and a spec, to the object that the store sends.
func (s *kubeStore) body(key listwatch.Key, data []byte) (map[string]any, error) {
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
	in.Metadata["namespace"] = s.namespace
	body := map[string]any{"apiVersion": s.resource.apiVersion(), "kind": s.resource.kind, "metadata": in.Metadata}
	if s.resource.String() == "configmaps" {
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
func (s *kubeStore) Delete(ctx context.Context, key listwatch.Key) (listwatch.Version, error) {
	before := s.version(key.Name)
	if before == "" {
		return 0, &listwatch.Error{Code: listwatch.NotFound, Message: key.String()}
	}
	if err := s.rest.do(ctx, "DELETE", s.resource.path(s.namespace)+"/"+key.Name, nil, nil, nil); err != nil {
		return 0, err
	}
	s.setVersion(key.Name, "")
	return s.deletedAt(ctx, key.Name, before)
}

// deletedAt returns the version at which an object was deleted. The parameter before is an older
// version of the object.
func (s *kubeStore) deletedAt(ctx context.Context, name, before string) (listwatch.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	query := url.Values{"watch": {"1"}, "resourceVersion": {before}, "fieldSelector": {"metadata.name=" + name}}
	resp, err := s.rest.send(ctx, "GET", s.resource.path(s.namespace), query, nil)
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

func (s *kubeStore) version(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.versions[name]
}

func (s *kubeStore) setVersion(name, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions[name] = version
}
