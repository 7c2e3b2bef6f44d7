package crd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/kubeapi/table"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// A Definition is a resource that a CustomResourceDefinition declares.
type Definition struct {
	kubeapi.Resource
	// Ignored describes the parts of the definition that have no effect, such as CEL rules. It is
	// nil if there are none.
	Ignored []string
	// Unserved has the entries of Ignored about versions and conversion.
	Unserved []string
}

// Parse returns the resources that the documents in text declare. It ignores documents of other
// kinds than CustomResourceDefinition. The definitions must be of apiextensions.k8s.io/v1, in YAML
// or JSON. Only one version is served: the storage version or, if the definition does not serve it,
// the first version that it serves. Parse returns an error of code Invalid if there is no
// definition, or an invalid one.
func Parse(text []byte) ([]Definition, error) {
	documents, err := Documents(text)
	if err != nil {
		return nil, err
	}
	var all []Definition
	for _, document := range documents {
		d, err := ParseJSON(document)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	if all == nil {
		return nil, invalid("the file", errors.New("it contains no CustomResourceDefinition"))
	}
	return all, nil
}

// Documents returns the CustomResourceDefinitions among the documents in text, in JSON.
func Documents(text []byte) (all [][]byte, err error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, invalid("the file", err)
		}
		if isEmpty(document) {
			continue
		}
		// Convert YAML only once, because that takes far longer than decoding JSON.
		data, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, invalid("the document", err)
		}
		var t struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(data, &t); err != nil {
			return nil, invalid("the document", err)
		}
		if t.Kind == "CustomResourceDefinition" {
			all = append(all, data)
		}
	}
}

// isEmpty reports whether a document contains only comments and empty lines.
func isEmpty(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

func invalid(what string, err error) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: what + ": " + err.Error()}
}

// ParseJSON returns the resource that a CustomResourceDefinition declares, like Parse. data is one
// definition in JSON without duplicate members.
func ParseJSON(data []byte) (Definition, error) {
	var c v1.CustomResourceDefinition
	if err := json.Unmarshal(data, &c.TypeMeta); err != nil {
		return Definition{}, invalid("the document", err)
	}
	if want := v1.SchemeGroupVersion.WithKind("CustomResourceDefinition"); c.GroupVersionKind() != want {
		return Definition{}, invalid("the document", fmt.Errorf("got %s, want %s", c.GroupVersionKind(), want))
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return Definition{}, invalid("CustomResourceDefinition", err)
	}
	v1.SetDefaults_CustomResourceDefinition(&c)
	d, err := declare(&c)
	if err != nil {
		return Definition{}, invalid(fmt.Sprintf("CustomResourceDefinition %q", c.Name), err)
	}
	return d, nil
}

func declare(c *v1.CustomResourceDefinition) (d Definition, err error) {
	names := c.Spec.Names
	i := slices.IndexFunc(c.Spec.Versions, func(v v1.CustomResourceDefinitionVersion) bool { return v.Storage })
	switch {
	case c.Spec.Group == "" || c.Name != names.Plural+"."+c.Spec.Group:
		return d, fmt.Errorf("metadata.name must be spec.names.plural and spec.group, joined by a dot")
	case c.Spec.Scope != v1.NamespaceScoped && c.Spec.Scope != v1.ClusterScoped:
		return d, fmt.Errorf("spec.scope: got %q, must be %q or %q", c.Spec.Scope, v1.NamespaceScoped, v1.ClusterScoped)
	case c.Spec.PreserveUnknownFields:
		return d, fmt.Errorf(
			"spec.preserveUnknownFields must be false; x-kubernetes-preserve-unknown-fields in the schema has the same effect")
	case i < 0:
		return d, fmt.Errorf("spec.versions: one version must have storage")
	}
	if !c.Spec.Versions[i].Served {
		i = slices.IndexFunc(c.Spec.Versions, func(v v1.CustomResourceDefinitionVersion) bool { return v.Served })
	}
	if i < 0 {
		return d, fmt.Errorf("spec.versions: one version must be served")
	}
	version := c.Spec.Versions[i]
	d.Resource = kubeapi.Resource{
		Group: c.Spec.Group, Version: version.Name, Plural: names.Plural, Kind: names.Kind,
		Namespaced: c.Spec.Scope == v1.NamespaceScoped, Custom: true,
		Singular: names.Singular, ShortNames: names.ShortNames, Categories: names.Categories,
		NoStatus: true,
	}
	d.ignoreVersions(c)
	d.addColumns(version.AdditionalPrinterColumns)
	if names.ListKind != names.Kind+"List" {
		d.ignore("spec.names.listKind: the kind of lists is %sList", names.Kind)
	}
	for _, f := range version.SelectableFields {
		names, err := jsonvalue.ParseMemberPath(f.JSONPath)
		if err != nil {
			return d, fmt.Errorf("selectableFields: %w", err)
		}
		d.Fields = append(d.Fields, strings.Join(names, "."))
	}
	if s := version.Subresources; s != nil {
		d.NoStatus = s.Status == nil
		d.addScale(s.Scale)
	}
	return d, d.addSchema(version.Schema)
}

func (d *Definition) addColumns(columns []v1.CustomResourceColumnDefinition) {
	if len(columns) == 0 {
		d.Columns = []table.Column{{Name: "Age", Type: "date", Path: ".metadata.creationTimestamp"}}
	}
	for _, c := range columns {
		column := table.Column{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: int(c.Priority),
			Path: c.JSONPath,
		}
		if column.Description == "" {
			column.Description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		if _, err := table.New([]table.Column{column}); err != nil {
			// Kubernetes serves the objects, with the columns before this one.
			d.ignore("additionalPrinterColumns: this column and those after it are not shown: %v", err)
			return
		}
		d.Columns = append(d.Columns, column)
	}
}

func (d *Definition) addScale(s *v1.CustomResourceSubresourceScale) {
	if s == nil {
		return
	}
	d.Scale = &kubeapi.Scale{
		SpecReplicasPath: s.SpecReplicasPath, DefaultReplicas: -1, StatusReplicasPath: s.StatusReplicasPath,
	}
	if s.LabelSelectorPath != nil {
		d.Scale.LabelSelectorPath = *s.LabelSelectorPath
	}
}

// ignoreVersions adds the versions that this package does not serve, and the conversion, to
// d.Ignored.
func (d *Definition) ignoreVersions(c *v1.CustomResourceDefinition) {
	for _, v := range c.Spec.Versions {
		if v.Served && v.Name != d.Version {
			d.ignore("version %s is not served, only version %s", v.Name, d.Version)
		}
	}
	if c.Spec.Conversion.Strategy != v1.NoneConverter {
		d.ignore("spec.conversion: the %s is never called", strings.ToLower(string(c.Spec.Conversion.Strategy)))
	}
	d.Unserved = slices.Clone(d.Ignored)
}

func (d *Definition) ignore(format string, args ...any) {
	d.Ignored = append(d.Ignored, fmt.Sprintf(format, args...))
}

// addSchema sets the schema of d, and the function that validates its objects.
func (d *Definition) addSchema(v *v1.CustomResourceValidation) error {
	if v == nil || v.OpenAPIV3Schema == nil {
		return fmt.Errorf("the schema of version %s is missing", d.Version)
	}
	var props apiextensions.JSONSchemaProps
	err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.OpenAPIV3Schema, &props, nil)
	if err != nil {
		return err
	}
	s, err := structural.NewStructural(&props)
	if err != nil {
		return err
	}
	if err := structural.ValidateStructural(field.NewPath("openAPIV3Schema"), s).ToAggregate(); err != nil {
		return err
	}
	if err := checkTypes(s); err != nil {
		return err
	}
	d.Schema = d.rootType(s)
	if d.Schema.OpenAPI, err = json.Marshal(v.OpenAPIV3Schema); err != nil {
		return err
	}
	checks := newValidator(s, d.Scale)
	d.Validate, d.ValidateStatus = checks.checkWhole, checks.checkStatus
	return nil
}
