package kubetest

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rbac"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serveAll serves the built-in kinds and the custom resources of the options, and creates the
// namespaces that exist from the start.
func (a *api) serveAll() error {
	for _, r := range rules.Kinds() {
		written := configured(a, r)
		if name := r.QualifiedName(); slices.Contains(rbac.Resources, name) {
			written = func(*listwatch.Object, bool) { a.authority.roleChanged(name) }
		}
		if err := a.add(rules.BuiltIn(r), written); err != nil {
			return err
		}
	}
	crds := rules.Declaration{
		Resource: rules.Definitions, Admit: rules.CompleteDefinition, Versions: []string{"v1"},
	}
	if err := a.add(crds, a.define); err != nil {
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
	if err := a.createFirstRoles(); err != nil {
		return err
	}
	if err := a.loadDefinitions(a.options.CRDs); err != nil {
		return err
	}
	// No handler of a webhook exists yet, so webhooks could only refuse the objects.
	if err := a.loadObjects(); err != nil {
		return err
	}
	return a.loadAdmission()
}

// createFirstRoles creates the cluster roles for users, and the binding of the administrators.
func (a *api) createFirstRoles() error {
	roles, err := rbac.FirstClusterRoles()
	if err != nil {
		return err
	}
	for _, role := range roles {
		if _, err := a.named(rbac.ClusterRoles).Collection.Create(context.Background(), role); err != nil {
			return err
		}
	}
	a.authority.started = true
	_, err = a.named(rbac.ClusterRoleBindings).Collection.Create(context.Background(), []byte(adminBinding))
	return err
}

const adminBinding = `{"metadata":{"name":"cluster-admin"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",` +
	`"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io",` +
	`"kind":"Group","name":"system:masters"}]}`

// kubernetesService is the service of the API server, which every cluster has.
const kubernetesService = `{"metadata":{"name":"kubernetes","namespace":"default",` +
	`"labels":{"component":"apiserver","provider":"kubernetes"}},"spec":{"type":"ClusterIP","clusterIP":"10.0.0.1",` +
	`"ports":[{"name":"https","protocol":"TCP","port":443,"targetPort":443}]}}`

// loadDefinitions creates the CustomResourceDefinitions in files and directories.
func (a *api) loadDefinitions(paths []string) error {
	definitions := a.named(rules.Definitions.QualifiedName())
	return eachDocument(paths, []string{rules.Definitions.Kind}, func(document []byte) error {
		// Create reports a wrong name.
		name, _ := rawjson.String(rawjson.Lookup(document, "metadata", "name"))
		var err error
		if rawjson.Lookup(document, "spec", "versions") == nil { // a patch
			_, err = definitions.Collection.Update(context.Background(), listwatch.Key{Name: name},
				listwatch.Preconditions{}, func(old *listwatch.Object) ([]byte, error) {
					return rawjson.Merge(old.Data, document)
				})
		} else {
			_, err = definitions.Collection.Create(context.Background(), document)
		}
		if err == nil {
			err = a.refusal(name)
		}
		return err
	})
}

// loadObjects creates the objects of the options.
func (a *api) loadObjects() error {
	return eachDocument(a.options.Objects, nil, func(document []byte) error {
		kind, _ := rawjson.String(rawjson.Lookup(document, "kind"))
		if kind == rules.Definitions.Kind || slices.Contains(admissionKinds, kind) {
			return nil // the other options read it
		}
		return a.create(document)
	})
}

// loadAdmission creates the webhook configurations and policies of the options.
func (a *api) loadAdmission() error {
	return eachDocument(a.options.Webhooks, admissionKinds, a.create)
}

// create creates the object in a document.
func (a *api) create(document []byte) error {
	// A name that is missing or has the wrong type is the name of no kind.
	version, _ := rawjson.String(rawjson.Lookup(document, "apiVersion"))
	kind, _ := rawjson.String(rawjson.Lookup(document, "kind"))
	v, found := a.version(version, kind)
	if !found {
		return fmt.Errorf("there is no kind %q in version %q", kind, version)
	}
	namespace := ""
	if v.Namespaced && rawjson.Lookup(document, "metadata", "namespace") == nil {
		namespace = "default"
	}
	_, err := v.collection.CreateIn(context.Background(), namespace, document)
	return err
}

// refusal returns the reason why the resource of a definition is not served, or nil if it is.
func (a *api) refusal(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused[name]
}

// define starts or stops serving the resource that a CustomResourceDefinition declares. Admit has
// checked the definition.
func (a *api) define(definition *listwatch.Object, deleted bool) {
	if a.isLate(definition) {
		return
	}
	name := definition.Key.Name
	before := a.named(name)
	switch {
	case deleted:
		a.forget(name)
		if before.Collection != nil {
			// The collector has deleted the objects, unless finalizers have no effect.
			// The store is in memory, so this cannot fail.
			_, _ = a.collector.DeleteAll(before, "", metav1.DeleteOptions{})
			a.remove(name)
			_ = a.rebuild() // fewer resources do not conflict
			a.retire(name)
		}
		a.defineRefused()
		return
	case rules.IsBeingDeleted(definition.Data):
		if before.Collection == nil {
			return
		}
		if names, err := a.serveDefinition(definition); err == nil && a.establish(name, names) {
			a.defineRefused()
		}
		return
	}
	names, isNew, err := a.serveChanged(definition)
	if !isNew {
		return
	}
	if before.Collection != nil { // a cluster ends the watches after each change
		a.backend(name).Source.Cut(io.EOF)
	}
	a.setRefusal(name, err)
	if a.establish(name, names) {
		a.defineRefused()
	}
}

// isLate reports whether a newer state of a definition was already seen. Concurrent writers report
// their writes in any order.
func (a *api) isLate(definition *listwatch.Object) bool {
	name := definition.Key.Name
	a.mu.Lock()
	defer a.mu.Unlock()
	if definition.Version < a.seen[name] {
		return true
	}
	a.seen[name] = definition.Version
	return false
}

// serveChanged serves the resource of a definition like serveDefinition, unless its spec is already
// known or no longer the newest. Then isNew is false. If it returns an error, the resource is not
// served.
func (a *api) serveChanged(definition *listwatch.Object) (names rules.Names, isNew bool, err error) {
	a.defining.Lock()
	defer a.defining.Unlock()
	if a.isLate(definition) || a.isDefined(definition) {
		return names, false, nil
	}
	if names, err = a.serveDefinition(definition); err != nil {
		a.remove(definition.Key.Name)
		_ = a.rebuild() // fewer resources do not conflict
	}
	return names, true, err
}

// definitions returns all definitions.
func (a *api) definitions() []*listwatch.Object {
	// The store is in memory, so this cannot fail.
	page, _ := a.named(rules.Definitions.QualifiedName()).Source.List(context.Background(), listwatch.Query{})
	return page.Items
}

// defineRefused gives definitions the names that have become free, and serves their resources.
func (a *api) defineRefused() {
	for _, o := range a.definitions() {
		if rules.GainsNames(o.Data, a.definitions()) {
			a.mu.Lock()
			delete(a.defined, o.Key.Name)
			a.mu.Unlock()
			a.define(o, false)
		}
	}
}

// serveDefinition serves the resource of a definition, and returns its names. It returns an error
// if the definition was never established and other definitions have its names.
func (a *api) serveDefinition(definition *listwatch.Object) (names rules.Names, err error) {
	if names, err = rules.AcceptNames(definition.Data, a.definitions()); err != nil {
		return names, err
	}
	if err := names.Conflict(); err != nil && !names.Established {
		return names, err
	}
	d, err := rules.Definition(definition.Data, a.converter(definition))
	if err != nil {
		return names, err
	}
	d.Singular, d.ShortNames = names.Accepted.Singular, names.Accepted.ShortNames
	for i := range d.Others {
		d.Others[i].Singular, d.Others[i].ShortNames = d.Singular, d.ShortNames
	}
	if rules.IsBeingDeleted(definition.Data) {
		d.RefuseCreates()
	}
	if err := a.add(d, nil); err != nil {
		return names, err
	}
	return names, a.rebuild()
}

func (a *api) setRefusal(name string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused[name] = err
}

// establish sets the names and the conditions of a definition, as the controllers of a cluster do
// after they have begun to serve the resource. It reports whether the names have changed. Names
// that became free may then go to other definitions.
func (a *api) establish(name string, names rules.Names) (changed bool) {
	definitions := a.named(rules.Definitions.QualifiedName()).Collection
	accepted := func(data []byte) []byte { return rawjson.Lookup(data, "status", "acceptedNames") }
	// The store is in memory. If the definition has been deleted, nothing is left to do.
	_, _ = definitions.Update(context.Background(), listwatch.Key{Name: name}, listwatch.Preconditions{},
		func(old *listwatch.Object) ([]byte, error) {
			next, err := rules.Establish(old.Data, names, a.refusal(name))
			changed = err == nil && !rawjson.Equal(accepted(old.Data), accepted(next))
			return next, err
		})
	return changed
}

// isDefined reports whether define has already seen the spec of a definition.
func (a *api) isDefined(definition *listwatch.Object) bool {
	name, spec := definition.Key.Name, rawjson.Lookup(definition.Data, "spec")
	a.mu.Lock()
	defer a.mu.Unlock()
	if before, ok := a.defined[name]; ok && rawjson.Equal(before, spec) {
		return true
	}
	a.defined[name] = spec
	return false
}

// forget removes what is known of a deleted definition.
func (a *api) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.defined, name)
	delete(a.refused, name)
}
