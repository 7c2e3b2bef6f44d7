package crd

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/store"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"
)

// A Definition is a resource that a CustomResourceDefinition declares.
type Definition struct {
	// Resource is the storage version: the version of the stored objects.
	kubeapi.Resource
	// Versions are all versions of the definition, including the storage version.
	Versions []Version
	// Ignored describes the parts of the definition that have no effect if [Definition.AddTo]
	// serves it, such as CEL rules. It is nil if there are none.
	Ignored []string

	byWebhook bool // a webhook converts the objects between the versions
}

// A Version is a version of a definition.
type Version struct {
	kubeapi.Resource
	// Served is true if clients can use this version.
	Served bool
}

// CollectionSpec returns the description of the stored objects for a store.
func (d Definition) CollectionSpec() store.CollectionSpec {
	r := d.Resource
	r.Fields = nil
	for _, v := range d.Versions {
		for _, field := range v.Fields {
			if !slices.Contains(r.Fields, field) {
				r.Fields = append(r.Fields, field)
			}
		}
	}
	return r.CollectionSpec()
}

// Served returns the versions that AddTo serves: all that the definition serves. If a webhook
// converts the objects, only one version is served: the storage version or, if the definition does
// not serve it, the first one that it serves.
func (d Definition) Served() []kubeapi.Resource {
	var all []kubeapi.Resource
	for _, v := range d.Versions {
		if v.Served {
			all = append(all, v.Resource)
		}
	}
	if !d.byWebhook {
		return all
	}
	isStored := func(r kubeapi.Resource) bool { return r.Version == d.Version }
	i := max(0, slices.IndexFunc(all, isStored))
	all[i].Convert = nil
	return all[i : i+1]
}

// AddTo serves the objects in stored, which is a collection with the CollectionSpec of d, in all
// versions of [Definition.Served].
func (d Definition) AddTo(h *kubeapi.Handler, stored *store.Collection) error {
	for _, r := range d.Served() {
		c := stored
		if r.Version != d.Version {
			c = kubeapi.InVersion(stored, r.CollectionSpec(), nil, nil)
		}
		if err := h.Add(r, c); err != nil {
			return err
		}
	}
	return nil
}

// Parse returns the resources that the documents in text declare. It ignores documents of other
// kinds than CustomResourceDefinition. The definitions must be of apiextensions.k8s.io/v1, in YAML
// or JSON. Parse returns an error of code Invalid if there is no definition, or an invalid one.
func Parse(text []byte) ([]Definition, error) {
	documents, err := Documents(text, "CustomResourceDefinition")
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

// Documents returns the documents in text that have one of the kinds, such as
// CustomResourceDefinition, in JSON. Without kinds, it returns all documents.
func Documents(text []byte, kinds ...string) (all [][]byte, err error) {
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
		if len(kinds) == 0 || slices.Contains(kinds, t.Kind) {
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
	isServed := func(v v1.CustomResourceDefinitionVersion) bool { return v.Served }
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
	case !slices.ContainsFunc(c.Spec.Versions, isServed):
		return d, fmt.Errorf("spec.versions: one version must be served")
	}
	d.byWebhook = c.Spec.Conversion.Strategy != v1.NoneConverter
	for _, v := range c.Spec.Versions {
		r, err := d.version(c, v)
		if err != nil {
			return d, err
		}
		d.Versions = append(d.Versions, Version{r, v.Served})
	}
	d.nameOtherVersions()
	d.Resource = d.Versions[i].Resource
	if d.byWebhook {
		d.ignoreVersions()
	}
	if names.ListKind != names.Kind+"List" {
		d.ignore("spec.names.listKind: the kind of lists is %sList", names.Kind)
	}
	return d, nil
}

// version returns the resource of c in one version.
func (d *Definition) version(
	c *v1.CustomResourceDefinition, v v1.CustomResourceDefinitionVersion,
) (r kubeapi.Resource, err error) {
	names := c.Spec.Names
	r = kubeapi.Resource{
		Group: c.Spec.Group, Version: v.Name, Plural: names.Plural, Kind: names.Kind,
		Namespaced: c.Spec.Scope == v1.NamespaceScoped, Custom: true,
		Singular: names.Singular, ShortNames: names.ShortNames, Categories: names.Categories,
		NoStatus: true, Warning: deprecation(c, v),
	}
	if len(c.Spec.Versions) > 1 {
		r.Convert = kubeapi.SetAPIVersion
	}
	r.Columns = d.columns(v.AdditionalPrinterColumns)
	for _, f := range v.SelectableFields {
		names, err := jsonvalue.ParseMemberPath(f.JSONPath)
		if err != nil {
			return r, fmt.Errorf("selectableFields: %w", err)
		}
		r.Fields = append(r.Fields, strings.Join(names, "."))
	}
	if s := v.Subresources; s != nil {
		r.NoStatus, r.Scale = s.Status == nil, scaleOf(s.Scale)
	}
	return r, d.addSchema(&r, v.Schema)
}

// nameOtherVersions sets the OtherVersions of each version.
func (d *Definition) nameOtherVersions() {
	for i := range d.Versions {
		for _, other := range slices.Concat(d.Versions[:i], d.Versions[i+1:]) {
			if d.Versions[i].OtherVersions == nil {
				d.Versions[i].OtherVersions = map[string]*schema.Type{}
			}
			d.Versions[i].OtherVersions[other.Version] = other.Schema
		}
	}
}

// deprecation returns the warning of a deprecated version, or "".
func deprecation(c *v1.CustomResourceDefinition, deprecated v1.CustomResourceDefinitionVersion) string {
	switch {
	case !deprecated.Deprecated:
		return ""
	case deprecated.DeprecationWarning != nil:
		return *deprecated.DeprecationWarning
	}
	newest := ""
	for _, v := range c.Spec.Versions {
		isNewer := version.CompareKubeAwareVersionStrings(v.Name, cmp.Or(newest, deprecated.Name)) > 0
		if v.Served && !v.Deprecated && isNewer {
			newest = v.Name
		}
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", c.Spec.Group, deprecated.Name, c.Spec.Names.Kind)
	if newest != "" {
		text += fmt.Sprintf("; use %s/%s %s", c.Spec.Group, newest, c.Spec.Names.Kind)
	}
	return text
}

// columns returns the columns of a version.
func (d *Definition) columns(columns []v1.CustomResourceColumnDefinition) (all []table.Column) {
	if len(columns) == 0 {
		return []table.Column{{Name: "Age", Type: "date", Path: ".metadata.creationTimestamp"}}
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
			return all
		}
		all = append(all, column)
	}
	return all
}

func scaleOf(s *v1.CustomResourceSubresourceScale) *kubeapi.Scale {
	if s == nil {
		return nil
	}
	scale := &kubeapi.Scale{
		SpecReplicasPath: s.SpecReplicasPath, DefaultReplicas: -1, StatusReplicasPath: s.StatusReplicasPath,
	}
	if s.LabelSelectorPath != nil {
		scale.LabelSelectorPath = *s.LabelSelectorPath
	}
	return scale
}

// ignoreVersions adds the versions that are not served because a webhook converts the objects, and
// the webhook, to d.Ignored.
func (d *Definition) ignoreVersions() {
	served := d.Served()[0].Version
	for _, v := range d.Versions {
		if v.Served && v.Version != served {
			d.ignore("version %s is not served, only version %s", v.Version, served)
		}
	}
	d.ignore("spec.conversion: the webhook is never called")
}

// ignore adds a text to d.Ignored. Versions usually ignore the same parts.
func (d *Definition) ignore(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(d.Ignored, text) {
		d.Ignored = append(d.Ignored, text)
	}
}

// addSchema sets the schema of r, and the functions that validate its objects.
func (d *Definition) addSchema(r *kubeapi.Resource, v *v1.CustomResourceValidation) error {
	if v == nil || v.OpenAPIV3Schema == nil {
		return fmt.Errorf("the schema of version %s is missing", r.Version)
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
	r.Schema = d.rootType(s)
	if r.Schema.OpenAPI, err = json.Marshal(v.OpenAPIV3Schema); err != nil {
		return err
	}
	checks := newValidator(s, r.Scale)
	r.Validate, r.ValidateStatus = checks.checkWhole, checks.checkStatus
	return nil
}
