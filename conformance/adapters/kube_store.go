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

// A kubeStore writes to one namespace of a cluster.
type kubeStore struct {
	*KubeServer
	space string

	mu   sync.Mutex
	last map[string]string // guarded by mu; the versions of the objects that there are, by name
}

// object is what is looked at of an object.
type object struct {
	Metadata struct{ Name, Namespace, ResourceVersion string }
}

// Put creates or replaces an object. A replacement names the version before, which servers want for custom resources.
func (s *kubeStore) Put(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
	body, err := s.body(key, data)
	if err != nil {
		return 0, err
	}
	const tries = 100 // others of the same case may write to the same name
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

// write creates the object, if it is not known to be there, or replaces it.
func (s *kubeStore) write(ctx context.Context, name string, body map[string]any) (version string, err error) {
	method, at := "POST", s.resource.Path(s.space)
	metadata := body["metadata"].(map[string]any)
	delete(metadata, "resourceVersion")
	if last := s.lastOf(name); last != "" {
		method, at = "PUT", at+"/"+name
		metadata["resourceVersion"] = last
	}
	var written object
	if err := s.rest.ask(ctx, method, at, nil, body, &written); err != nil {
		return "", err
	}
	s.setLast(name, written.Metadata.ResourceVersion)
	return written.Metadata.ResourceVersion, nil
}

// refresh learns of which version an object is.
func (s *kubeStore) refresh(ctx context.Context, name string) error {
	var now object
	err := s.rest.ask(ctx, "GET", s.resource.Path(s.space)+"/"+name, nil, nil, &now)
	if err != nil && !errors.Is(err, listwatch.NotFound) {
		return err
	}
	s.setLast(name, now.Metadata.ResourceVersion)
	return nil
}

// body is the object that is sent for data, which has metadata and a spec.
func (s *kubeStore) body(key listwatch.Key, data []byte) (map[string]any, error) {
	if key.Namespace != "default" {
		return nil, fmt.Errorf("a case that was given one namespace writes to %s", key)
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
	in.Metadata["namespace"] = s.space
	body := map[string]any{"apiVersion": s.resource.APIVersion(), "kind": s.resource.Kind, "metadata": in.Metadata}
	if s.resource.QualifiedName() == "configmaps" {
		body["data"] = texts(in.Spec)
	} else {
		body["spec"] = in.Spec
	}
	return body, nil
}

// texts returns the values of a spec as texts, which is what a ConfigMap holds.
func texts(spec map[string]json.RawMessage) map[string]string {
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

// keyRune makes a key of a ConfigMap of any text: letters, digits, '-', '_' and '.'.
func keyRune(r rune) rune {
	if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r)) {
		return r
	}
	return '_'
}

// Delete removes an object. The answer to a DELETE need not tell the version of that, so a watch does.
func (s *kubeStore) Delete(ctx context.Context, key listwatch.Key) (listwatch.Version, error) {
	before := s.lastOf(key.Name)
	if before == "" {
		return 0, &listwatch.Error{Code: listwatch.NotFound, Message: key.String()}
	}
	if err := s.rest.ask(ctx, "DELETE", s.resource.Path(s.space)+"/"+key.Name, nil, nil, nil); err != nil {
		return 0, err
	}
	s.setLast(key.Name, "")
	return s.deletedAt(ctx, key.Name, before)
}

// deletedAt returns the version at which the object, once of a version, was deleted.
func (s *kubeStore) deletedAt(ctx context.Context, name, before string) (listwatch.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	query := url.Values{"watch": {"1"}, "resourceVersion": {before}, "fieldSelector": {"metadata.name=" + name}}
	resp, err := s.rest.send(ctx, "GET", s.resource.Path(s.space), query, nil)
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
			return 0, fmt.Errorf("watch for the version of the delete: %w", err)
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

func (s *kubeStore) lastOf(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[name]
}

func (s *kubeStore) setLast(name, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[name] = version
}
