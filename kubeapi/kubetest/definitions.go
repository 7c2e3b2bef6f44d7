package kubetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// serveAll serves the built-in kinds and the custom resources of the options, and creates the
// namespaces that exist from the start.
func (a *api) serveAll() error {
	for _, r := range rules.Kinds() {
		if err := a.add(r, rules.BuiltIn(r), nil); err != nil {
			return err
		}
	}
	if err := a.add(rules.Definitions, rules.CompleteDefinition, a.define); err != nil {
		return err
	}
	if err := a.rebuild(); err != nil {
		return err
	}
	namespaces := a.named("namespaces").Collection
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		if _, err := namespaces.Create(context.Background(), []byte(`{"metadata":{"name":"`+name+`"}}`)); err != nil {
			return err
		}
	}
	if _, err := a.named("services").Collection.Create(context.Background(), []byte(kubernetesService)); err != nil {
		return err
	}
	return a.loadDefinitions(a.options.definitions)
}

// kubernetesService is the service of the API server, which every cluster has.
const kubernetesService = `{"metadata":{"name":"kubernetes","namespace":"default",` +
	`"labels":{"component":"apiserver","provider":"kubernetes"}},"spec":{"type":"ClusterIP","clusterIP":"10.0.0.1",` +
	`"ports":[{"name":"https","protocol":"TCP","port":443,"targetPort":443}]}}`

// loadDefinitions creates the CustomResourceDefinitions in files and directories.
func (a *api) loadDefinitions(paths []string) error {
	definitions := a.named(rules.Definitions.QualifiedName())
	for _, path := range paths {
		files, err := filesIn(path)
		if err != nil {
			return err
		}
		for _, file := range files {
			documents, err := readDefinitions(file)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			for _, document := range documents {
				o, err := definitions.Collection.Create(context.Background(), document)
				if err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
				if a.named(o.Key.Name).Collection == nil {
					return fmt.Errorf("%s: %s conflicts with another resource", file, o.Key.Name)
				}
			}
		}
	}
	return nil
}

// filesIn returns path, or the files of definitions in it if it is a directory.
func filesIn(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) && !e.IsDir() {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, nil
}

// readDefinitions returns the CustomResourceDefinitions in a file as JSON.
func readDefinitions(file string) (all [][]byte, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		var t metav1.TypeMeta
		if err := json.Unmarshal(data, &t); err != nil {
			return nil, err
		}
		if t.Kind == rules.Definitions.Kind {
			all = append(all, data)
		}
	}
}

// define starts or stops to serve the resource that a CustomResourceDefinition declares. Admit has
// checked the definition.
func (a *api) define(definition *listwatch.Object, deleted bool) {
	name := definition.Key.Name
	switch s := a.named(name); {
	case deleted && s.Collection != nil:
		_, _ = a.collector.DeleteAll(s, "", metav1.DeleteOptions{}) // the store is in memory
		a.remove(name)
		_ = a.rebuild() // fewer resources do not conflict
		return
	case deleted, rules.IsBeingDeleted(definition.Data):
		return
	}
	r, admit, err := rules.Definition(definition.Data)
	if err == nil {
		err = a.add(r, admit, nil)
	}
	if err == nil {
		err = a.rebuild()
	}
	if err != nil { // its names belong to another resource
		a.remove(name)
		_ = a.rebuild()
	}
}
