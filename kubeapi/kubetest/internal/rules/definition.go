package rules

import (
	"context"
	"encoding/json"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/crd"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Definitions holds the CustomResourceDefinitions. A write to it changes what is served.
var Definitions = kubeapi.Resource{
	Group: v1.GroupName, Version: "v1", Plural: "customresourcedefinitions", Kind: "CustomResourceDefinition",
	Names: kubeapi.Names{ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"}},
}

// CompleteDefinition checks a CustomResourceDefinition and sets its status, as the controllers of a
// cluster do.
func CompleteDefinition(_ context.Context, _ *listwatch.Object, data []byte) ([]byte, error) {
	var c v1.CustomResourceDefinition
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	v1.SetDefaults_CustomResourceDefinition(&c)
	if _, _, err := Definition(data); err != nil {
		return nil, err
	}
	if len(c.Status.Conditions) > 0 {
		return data, nil
	}
	status := v1.CustomResourceDefinitionStatus{AcceptedNames: c.Spec.Names}
	now := metav1.Now()
	status.Conditions = []v1.CustomResourceDefinitionCondition{
		{
			Type: v1.NamesAccepted, Status: v1.ConditionTrue, LastTransitionTime: now,
			Reason: "NoConflicts", Message: "no conflicts found",
		},
		{
			Type: v1.Established, Status: v1.ConditionTrue, LastTransitionTime: now,
			Reason: "InitialNamesAccepted", Message: "the initial names have been accepted",
		},
	}
	for _, version := range c.Spec.Versions {
		if version.Storage {
			status.StoredVersions = append(status.StoredVersions, version.Name)
		}
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, err
	}
	return rawjson.Merge(data, patch)
}

// Definition returns the resource that a CustomResourceDefinition declares, and the rules for
// its objects.
func Definition(data []byte) (kubeapi.Resource, Admit, error) {
	d, err := crd.ParseJSON(data)
	if err != nil {
		return kubeapi.Resource{}, nil, err
	}
	r := d.Resource
	admit, err := Custom(d)
	// admit validates each object after it has filled in the defaults, so Validate accepts all.
	r.Validate = func([]byte, bool) field.ErrorList { return nil }
	return r, admit, err
}
