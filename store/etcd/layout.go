package etcd

import (
	"fmt"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// KubernetesLayout returns the path at which kube-apiserver stores a collection below its prefix
// /registry. That is group/plural for custom resources and for the groups apiextensions.k8s.io
// and apiregistration.k8s.io, the plural for its other resources, and an older name for a few of
// them. Custom resources are JSON. kube-apiserver stores its own resources as Protocol Buffers by
// default, which this package cannot read.
func KubernetesLayout(s store.CollectionSpec) string {
	s = s.WithDefaults()
	group := s.Group()
	if old, ok := oldNames[s.QualifiedName()]; ok {
		return old
	}
	switch {
	case group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io":
		return group + "/" + s.Plural
	case !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io"):
		return s.Plural
	}
	return group + "/" + s.Plural
}

// oldNames holds the paths of resources that were renamed (SpecialDefaultResourcePrefixes
// in kube-apiserver).
var oldNames = map[string]string{
	"replicationcontrollers":      "controllers",
	"endpoints":                   "services/endpoints",
	"services":                    "services/specs",
	"nodes":                       "minions",
	"ingresses.networking.k8s.io": "ingress",
}

// A keyRange is the range of keys of a collection in etcd.
type keyRange struct {
	dir        string // the common prefix, which ends with a slash
	namespaced bool
}

func newKeyRange(o Options, s store.CollectionSpec) keyRange {
	return keyRange{strings.TrimRight(o.Prefix, "/") + "/" + strings.Trim(o.Layout(s), "/") + "/", s.Namespaced}
}

// end returns the first key after the range.
func (r keyRange) end() string { return r.dir[:len(r.dir)-1] + "0" } // '0' follows '/'

// path returns the etcd key of an object.
func (r keyRange) path(k listwatch.Key) string {
	if k.Namespace != "" {
		return r.dir + k.Namespace + "/" + k.Name
	}
	return r.dir + k.Name
}

// key is the inverse of path, for a path in the range.
func (r keyRange) key(path string) (listwatch.Key, error) {
	first, second, two := strings.Cut(strings.TrimPrefix(path, r.dir), "/")
	switch {
	case !two && first != "":
		return listwatch.Key{Name: first}, nil
	case two && r.namespaced && first != "" && second != "" && !strings.Contains(second, "/"):
		return listwatch.Key{Namespace: first, Name: second}, nil
	case r.namespaced:
		return listwatch.Key{}, fmt.Errorf("must have the form %sNAMESPACE/NAME", r.dir)
	}
	return listwatch.Key{}, fmt.Errorf("must have the form %sNAME", r.dir)
}
