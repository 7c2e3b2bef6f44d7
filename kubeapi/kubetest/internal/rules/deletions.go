package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deletions maps the qualified names of kinds to their rules for deletes. The other kinds follow
// the general rules.
var deletions = map[string]kubeapi.Deletion{
	"events":               {Unpropagated: true},
	"events.events.k8s.io": {Unpropagated: true},
	"jobs.batch": {
		Policy: metav1.DeletePropagationOrphan,
		Warning: "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to " +
			"remove them or set propagationPolicy=Orphan to suppress this warning",
	},
	"namespaces":                       {ReturnsObject: true, Mark: markNamespace},
	"persistentvolumeclaims":           {ReturnsObject: true},
	"persistentvolumes":                {ReturnsObject: true},
	"pods":                             {ReturnsObject: true},
	"podtemplates":                     {ReturnsObject: true},
	"replicationcontrollers":           {Policy: metav1.DeletePropagationOrphan},
	"resourcequotas":                   {ReturnsObject: true},
	"serviceaccounts":                  {ReturnsObject: true},
	"services":                         {ReturnsObject: true},
	"csidrivers.storage.k8s.io":        {ReturnsObject: true},
	"csinodes.storage.k8s.io":          {ReturnsObject: true},
	"storageclasses.storage.k8s.io":    {ReturnsObject: true},
	"volumeattachments.storage.k8s.io": {ReturnsObject: true},
}

// protectedNamespaces cannot be deleted.
var protectedNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

// markNamespace marks a namespace for deletion; see [kubeapi.Deletion]. Unlike in other kinds, the
// option orphanDependents=false means the policy Foreground.
func markNamespace(old, next []byte, o metav1.DeleteOptions) ([]byte, error) {
	m, err := Metadata(old)
	switch {
	case err != nil:
		return nil, err
	case slices.Contains(protectedNamespaces, m.Name):
		return nil, &listwatch.Error{
			Code:    listwatch.Forbidden,
			Message: fmt.Sprintf("namespaces %q is forbidden: this namespace may not be deleted", m.Name),
			Details: &listwatch.Details{Name: m.Name, Kind: "namespaces"},
		}
	case m.DeletionTimestamp != nil && slices.Contains(m.Finalizers, NamespaceFinalizer):
		return old, nil
	case m.DeletionTimestamp != nil:
		return jsonvalue.SetMetadata(next, "deletionGracePeriodSeconds", []byte("0")), nil
	}
	//lint:ignore SA1019 old clients still use the option
	if o.OrphanDependents != nil && !*o.OrphanDependents {
		next = jsonvalue.SetFinalizers(next, append(m.Finalizers, metav1.FinalizerDeleteDependents))
	}
	return rawjson.Merge(markAt(next, time.Now()), []byte(`{"status":{"phase":"Terminating"}}`))
}

// markAt sets the deletionTimestamp of an object.
func markAt(object []byte, now time.Time) []byte {
	return jsonvalue.SetMetadata(object, "deletionTimestamp", []byte(`"`+now.UTC().Format(time.RFC3339)+`"`))
}
