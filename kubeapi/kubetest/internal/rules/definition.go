package rules

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/crd"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/memo"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Definitions holds the CustomResourceDefinitions. A write to it changes what is served.
var Definitions = kubeapi.Resource{
	Group: v1.GroupName, Version: "v1", Plural: "customresourcedefinitions", Kind: "CustomResourceDefinition",
	ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
	SeparateStatus: true, Deletes: kubeapi.Deletion{Mark: markDefinition},
}

// CompleteDefinition checks a CustomResourceDefinition. A new one gets the status that it has in a
// cluster before the controllers have seen it.
func CompleteDefinition(_ context.Context, old *listwatch.Object, data []byte) ([]byte, error) {
	if old != nil {
		var err error
		if data, err = updateDefinition(old.Data, data); err != nil {
			return nil, err
		}
	}
	if _, err := Definition(data, nil); err != nil {
		return nil, err
	}
	data, err := completeSpec(data)
	if err != nil || old != nil {
		return data, err
	}
	c, err := parseDefinition(data)
	if err != nil {
		return nil, err
	}
	var status v1.CustomResourceDefinitionStatus
	for _, version := range c.Spec.Versions {
		if version.Storage {
			status.StoredVersions = append(status.StoredVersions, version.Name)
		}
	}
	return withStatus(data, status)
}

// completeSpec adds the names and the conversion that a definition has by default.
func completeSpec(data []byte) ([]byte, error) {
	c, err := parseDefinition(data)
	if err != nil {
		return nil, err
	}
	names, err := json.Marshal(map[string]string{"singular": c.Spec.Names.Singular, "listKind": c.Spec.Names.ListKind})
	if err != nil {
		return nil, err
	}
	if data, err = setDefaults(data, string(names), "spec", "names"); err != nil {
		return nil, err
	}
	service := []string{"spec", "conversion", "webhook", "clientConfig", "service"}
	if rawjson.Lookup(data, service...) != nil {
		return setDefaults(data, `{"port":443}`, service...)
	}
	return setDefaults(data, `{"conversion":{"strategy":"None"}}`, "spec")
}

// withStatus returns a definition with the given status.
func withStatus(data []byte, status v1.CustomResourceDefinitionStatus) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, err
	}
	return rawjson.Merge(data, patch)
}

// Establish returns a definition with the names and the conditions that controllers set. If refused
// is not nil, the resource is not served, and the definition is not established.
func Establish(data []byte, n Names, refused error) ([]byte, error) {
	c, err := parseDefinition(data)
	if err != nil {
		return nil, err
	}
	c.Status.AcceptedNames = n.Accepted
	established := v1.CustomResourceDefinitionCondition{
		Type: v1.Established, Status: v1.ConditionTrue, Reason: "InitialNamesAccepted",
		Message: "the initial names have been accepted",
	}
	if refused != nil {
		established.Status, established.Reason = v1.ConditionFalse, "NotAccepted"
		established.Message = "not all names are accepted"
		if n.Condition.Status == v1.ConditionTrue { // the names of a built-in resource, or its path
			n.refuse("NamesConflict", refused)
		}
	}
	apihelpers.SetCRDCondition(&c, n.Condition)
	apihelpers.SetCRDCondition(&c, established)
	return withStatus(data, c.Status)
}

// Definition returns the Declaration of the resource that a CustomResourceDefinition defines.
// byWebhook converts its objects if a webhook does.
func Definition(data []byte, byWebhook kubeapi.Converter) (Declaration, error) {
	d, err := parse(data)
	if err != nil {
		return Declaration{}, err
	}
	convert := kubeapi.SetAPIVersion
	if d.byWebhook {
		convert = byWebhook
	}
	all := Declaration{}
	for _, v := range d.Versions {
		c, r := d.customs[v.APIVersion()], v.Resource
		r.Complete, r.Validate, r.ValidateStatus = c.complete, c.checkNulls, nil
		if r.Convert != nil {
			r.Convert = convert
		}
		if v.Served {
			all.Versions = append(all.Versions, v.Version)
		}
		if v.Version == d.Version {
			all.Resource, all.Admit, all.Unserved = r, c.admit, !v.Served
			continue
		}
		all.Others = append(all.Others, Version{r, c.admit, v.Served})
	}
	if len(d.Versions) > 1 {
		c := conversion{d.customs, convert}
		all.Read, all.Write = c.read, c.write
	}
	return all, nil
}

// A definition is what a CustomResourceDefinition declares. It is immutable.
type definition struct {
	crd.Definition
	customs   map[string]*custom // the rules of all versions, by apiVersion
	byWebhook bool               // a webhook converts the objects
}

// parsed has the definitions of all Envs, by their names and specs.
var parsed memo.Memo[*definition]

// parse reads a CustomResourceDefinition. Only its name and its spec matter.
func parse(data []byte) (*definition, error) {
	key := fmt.Appendf(nil, `{"apiVersion":%s,"kind":%s,"metadata":{"name":%s},"spec":%s}`,
		orNull(data, "apiVersion"), orNull(data, "kind"), orNull(data, "metadata", "name"), orNull(data, "spec"))
	return parsed.Get(string(key), func() (*definition, error) {
		declared, err := crd.ParseJSON(key)
		if err != nil {
			return nil, err
		}
		c, err := parseDefinition(key)
		if err != nil {
			return nil, err
		}
		d := &definition{declared, map[string]*custom{}, c.Spec.Conversion.Strategy == v1.WebhookConverter}
		for _, v := range d.Versions {
			if d.customs[v.APIVersion()], err = newCustom(v.Resource); err != nil {
				return nil, err
			}
		}
		return d, nil
	})
}

// orNull returns the member at path, or null if there is none.
func orNull(data []byte, path ...string) []byte {
	if value := rawjson.Lookup(data, path...); value != nil {
		return value
	}
	return []byte("null")
}
