package etcd

import (
	"fmt"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// DefaultLayout keeps a collection under its plural with its group: "pods", "deployments.apps".
func DefaultLayout(r store.CollectionSpec) string { return r.QualifiedName() }

// KubernetesLayout keeps a collection where kube-apiserver does, below its prefix /registry: custom resources under group/plural, its own under the
// plural, and a few under names of old. kube-apiserver keeps its own resources as Protocol Buffers unless told otherwise, which this package can't
// read; custom resources are always JSON.
func KubernetesLayout(r store.CollectionSpec) string {
	r = r.WithDefaults()
	group := r.Group()
	if old, ok := oldNames[r.QualifiedName()]; ok {
		return old
	}
	switch {
	case group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io":
		return group + "/" + r.Plural
	case !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io"):
		return r.Plural
	}
	return group + "/" + r.Plural
}

// oldNames are where kube-apiserver keeps what it once called otherwise (SpecialDefaultResourcePrefixes).
var oldNames = map[string]string{
	"replicationcontrollers":      "controllers",
	"endpoints":                   "services/endpoints",
	"services":                    "services/specs",
	"nodes":                       "minions",
	"ingresses.networking.k8s.io": "ingress",
}

// A location is where a collection is in etcd.
type keyRange struct {
	dir        string // ends with a slash
	namespaced bool
}

func newLocation(o Options, r store.CollectionSpec) keyRange {
	return keyRange{strings.TrimRight(o.Prefix, "/") + "/" + strings.Trim(o.Layout(r), "/") + "/", r.Namespaced}
}

// end is the first key after all those of the location.
func (l keyRange) end() string { return l.dir[:len(l.dir)-1] + "0" } // '0' comes after '/'

func (l keyRange) path(k listwatch.Key) string {
	if k.Namespace != "" {
		return l.dir + k.Namespace + "/" + k.Name
	}
	return l.dir + k.Name
}

// key returns the key of the object at path, which is in the location.
func (l keyRange) key(path string) (listwatch.Key, error) {
	first, second, two := strings.Cut(strings.TrimPrefix(path, l.dir), "/")
	switch {
	case !two && first != "":
		return listwatch.Key{Name: first}, nil
	case two && l.namespaced && first != "" && second != "" && !strings.Contains(second, "/"):
		return listwatch.Key{Namespace: first, Name: second}, nil
	case l.namespaced:
		return listwatch.Key{}, fmt.Errorf("want %sNAMESPACE/NAME", l.dir)
	}
	return listwatch.Key{}, fmt.Errorf("want %sNAME", l.dir)
}
