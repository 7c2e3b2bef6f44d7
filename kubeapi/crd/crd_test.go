package crd

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/table"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func readWidgets(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/widgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parseWidgets(t testing.TB) []Definition {
	t.Helper()
	all, err := Parse([]byte(readWidgets(t)))
	if err != nil || len(all) != 2 {
		t.Fatalf("got %d definitions, %v", len(all), err)
	}
	return all
}

func TestParseReadsEveryDeclaration(t *testing.T) {
	all := parseWidgets(t)
	widget := all[0].Resource
	widget.Schema, widget.Validate, widget.ValidateStatus = nil, nil, nil
	widget.Convert, widget.OtherVersions = nil, nil
	want := kubeapi.Resource{
		Group: "demo.example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true, Custom: true,
		Singular: "widget", ShortNames: []string{"wd"}, Categories: []string{"all", "toys"},
		Fields: []string{"spec.color"},
		Scale: &kubeapi.Scale{
			SpecReplicasPath: ".spec.replicas", DefaultReplicas: -1,
			StatusReplicasPath: ".status.replicas", LabelSelectorPath: ".status.selector",
		},
		Columns: []table.Column{
			{Name: "Color", Type: "string", Path: ".spec.color", Description: "The color of the paint."},
			{
				Name: "Ready", Type: "string", Path: `.status.conditions[?(@.type == "Ready")].status`,
				Description: `Custom resource definition column (in JSONPath format): .status.conditions[?(@.type == "Ready")].status`,
			},
			{
				Name: "Replicas", Type: "integer", Path: ".spec.replicas", Priority: 1,
				Description: "Custom resource definition column (in JSONPath format): .spec.replicas",
			},
			{
				Name: "Age", Type: "date", Path: ".metadata.creationTimestamp",
				Description: "Custom resource definition column (in JSONPath format): .metadata.creationTimestamp",
			},
		},
	}
	if diff := cmp.Diff(want, widget, cmp.AllowUnexported(table.Column{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	gadget := all[1]
	if gadget.Namespaced || !gadget.NoStatus || gadget.Scale != nil || len(gadget.Columns) != 1 ||
		gadget.Singular != "gadget" || gadget.Ignored != nil {
		t.Errorf("got %+v, want a cluster-wide resource without subresources and with the age as the only column",
			gadget)
	}
}

func TestSchemaHasTheTypesOfFields(t *testing.T) {
	spec := parseWidgets(t)[0].Schema.Field("spec").Type
	grid := schema.Field{List: true, Elements: &schema.Field{
		List: true, Type: &schema.Type{Fields: map[string]schema.Field{"x": {Scalar: schema.Integer}}},
	}}
	for name, want := range map[string]schema.Field{
		"color": {Scalar: schema.String}, "size": {Scalar: schema.Int32, Default: int64(1)},
		"replicas": {Scalar: schema.Integer},
		"port":     {Scalar: schema.IntOrString}, "since": {Scalar: schema.Time},
		"tags": {List: true, Set: true, Scalar: schema.String},
		"parts": {List: true, Keys: []string{"id"}, Type: &schema.Type{
			Fields: map[string]schema.Field{"id": {Scalar: schema.String}, "weight": {Scalar: schema.Number}},
		}},
		"grid": grid,
		"frame": {Type: &schema.Type{
			Atomic: true, Fields: map[string]schema.Field{
				"width":  {Scalar: schema.Integer},
				"height": {Scalar: schema.Integer},
			},
		}},
	} {
		if diff := cmp.Diff(want, spec.Field(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestUnknownFieldsFollowTheSchema(t *testing.T) {
	types := parseWidgets(t)
	for doc, want := range map[string][]string{
		`{"spec":{"color":"red","raw":{"a":{"b":1}},"limits":{"cpu":{"max":1}},"template":{"kind":"Pod","any":1}}}`: nil,
		`{"spec":{"colour":"red"}}`:                        {"spec.colour"},
		`{"spec":{"parts":[{"id":"a"},{"identity":"b"}]}}`: {"spec.parts[1].identity"},
		`{"spec":{"grid":[[],[{"x":1,"y":2}]]}}`:           {"spec.grid[1][0].y"},
		`{"spec":{"limits":{"cpu":{"min":1}}}}`:            {"spec.limits.cpu.min"},
		`{"spec":{"frame":{"depth":1}}}`:                   {"spec.frame.depth"},
	} {
		if diff := cmp.Diff(want, types[0].Schema.Unknown([]byte(doc))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", doc, diff)
		}
	}
	if got := types[1].Schema.Unknown([]byte(`{"spec":{"any":1}}`)); got != nil {
		t.Errorf("without a schema: got %q", got)
	}
}

func TestNullIsAFaultAfterAnApply(t *testing.T) {
	validate := parseWidgets(t)[0].Validate
	object := []byte(`{"spec":{"color":"red","replicas":null}}`)
	if got := validate(object, false); got != nil {
		t.Errorf("got %v, want null ignored", got)
	}
	got := validate(object, true)
	if !slices.ContainsFunc(got, func(e *field.Error) bool { return e.Field == "spec.replicas" }) {
		t.Errorf("got %v, want a fault of spec.replicas", got)
	}
}

func TestValidateFindsEveryFault(t *testing.T) {
	validate := parseWidgets(t)[0].Validate
	for doc, want := range map[string]string{
		`{"spec":{"color":"red","name":null,"port":"http","replicas":1}}`:   "",
		`{"spec":{"color":"red","port":80,"since":"2030-01-01T00:00:00Z"}}`: "",
		`{}`:                                     "spec: Required value",
		`{"spec":{}}`:                            "spec.color: Required value",
		`{"spec":{"color":"pink"}}`:              `spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"`,
		`{"spec":{"color":"red","replicas":11}}`: "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10",
		`{"spec":{"color":"red","replicas":"1"}}`:                  `spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"`,
		`{"spec":{"color":"red","port":1.5}}`:                      `spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"`,
		`{"spec":{"color":"red","name":"abcdef"}}`:                 "spec.name: Too long: may not be more than 5 bytes",
		`{"spec":{"color":"red","name":"A"}}`:                      "spec.name: Invalid value: \"A\": spec.name in body should match '^[a-z]*$'",
		`{"spec":{"color":"red","tags":["a","a"]}}`:                `spec.tags[1]: Duplicate value: "a"`,
		`{"spec":{"color":"red","tags":["a","b","c","d"]}}`:        "spec.tags: Too many: 4: must have at most 3 items",
		`{"spec":{"color":"red","parts":[{"id":"a"},{"id":"a"}]}}`: `spec.parts[1]: Duplicate value: {"id":"a"}`,
		`{"spec":{"color":"red","parts":[{}]}}`:                    "spec.parts[0].id: Required value",
		`{"spec":{"color":"red","since":"today"}}`:                 `spec.since: Invalid value: "today": spec.since in body must be of type date-time: "today"`,
		`{"spec":{"color":null}}`:                                  "spec.color: Required value",
		`{"spec":{"color":"red","tags":null}}`:                     "",
		`{"spec":{"color":"red","replicas":1.0}}`:                  ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: 1 is of the type float64, expected int64",
		`{"spec":{"color":"red"},"status":{"replicas":-1}}`:        ".status.replicas: Invalid value: -1: should be a non-negative integer",
	} {
		var got []string
		for _, e := range validate([]byte(doc), false) {
			got = append(got, e.Error())
		}
		if joined := strings.Join(got, "; "); joined != want && (want == "" || !strings.Contains(joined, want)) {
			t.Errorf("%s:\ngot  %s\nwant %s", doc, joined, want)
		}
	}
}

// As in Kubernetes, the texts of errors in a status name the path below the status, and a write of
// the status does not check the spec.
func TestValidateStatusFindsEveryFault(t *testing.T) {
	validate := parseWidgets(t)[0].ValidateStatus
	for doc, want := range map[string]string{
		`{}`:                        "",
		`{"spec":{"replicas":"1"}}`: "",
		`{"status":{"replicas":"1"}}`: `status.replicas: Invalid value: "string": replicas in body must be of type integer: "string"; ` +
			`.status.replicas: Invalid value: 0: .status.replicas accessor error: 1 is of the type string, expected int64`,
		`{"status":{"replicas":-1}}`: ".status.replicas: Invalid value: -1: should be a non-negative integer",
		`{"status":{"conditions":[{"type":1}]}}`: `status.conditions[0].type: Invalid value: "integer": ` +
			`conditions[0].type in body must be of type string: "integer"`,
		`{"status":{"selector":7}}`: `status.selector: Invalid value: "integer": selector in body must be of type string: "integer"; ` +
			`.status.selector: Invalid value: "": .status.selector accessor error: 7 is of the type int64, expected string`,
		`{"status":"x"}`: `status: Invalid value: "string": in body must be of type object: "string"; ` +
			`.status.replicas: Invalid value: 0: .status.replicas accessor error: x is of the type string, expected map[string]interface{}; ` +
			`.status.selector: Invalid value: "": .status.selector accessor error: x is of the type string, expected map[string]interface{}`,
	} {
		var got []string
		for _, e := range validate([]byte(doc), false) {
			got = append(got, strings.Join(strings.Fields(e.Error()), " "))
		}
		if joined := strings.Join(got, "; "); joined != want {
			t.Errorf("%s:\ngot  %s\nwant %s", doc, joined, want)
		}
	}
}

func TestInvalidDefinitionsAreRefused(t *testing.T) {
	text, _, _ := strings.Cut(readWidgets(t), "\n---\n")
	for _, c := range []struct{ old, new, want string }{
		{"kind: CustomResourceDefinition", "kind: Deployment", "it contains no CustomResourceDefinition"},
		{
			"apiextensions.k8s.io/v1\n", "apiextensions.k8s.io/v1beta1\n",
			"want apiextensions.k8s.io/v1, Kind=CustomResourceDefinition",
		},
		{"name: widgets.demo", "name: widget.demo", "metadata.name must be spec.names.plural and spec.group"},
		{"scope: Namespaced", "scope: Global", `spec.scope: got "Global"`},
		{
			"scope: Namespaced", "scope: Namespaced\n  preserveUnknownFields: true",
			"spec.preserveUnknownFields must be false",
		},
		{"storage: true", "storage: false", "one version must have storage"},
		{"shortNames:", "shortNamen:", `unknown field "shortNamen"`},
		{"scope: Namespaced", "scope: Namespaced\n  scope: Cluster", `key "scope" already set`},
		{"- jsonPath: .spec.color", "- jsonPath: .spec.list[0]", "selectableFields"},
		{
			"color:\n                type: string", "color:\n                type: text",
			`the type "text" does not exist`,
		},
		{"tags:\n                type: array", "tags:\n                $ref: x", "$ref"},
		{"raw: {type: object, ", "raw: {", ""},
		{text, "# nothing", "it contains no CustomResourceDefinition"},
		{text, "{", "the document"},
	} {
		changed := strings.Replace(text, c.old, c.new, 1)
		_, err := Parse([]byte(changed))
		if c.want == "" && err != nil ||
			c.want != "" && (!errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q instead of %q: got %v, want %q", c.new, c.old, err, c.want)
		}
		if changed == text {
			t.Errorf("%q is not in the file", c.old)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(readWidgets(f)))
	f.Add([]byte("---\n---\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := Parse(text)
		if (err == nil) == (len(all) == 0) || err != nil && !errors.Is(err, listwatch.Invalid) {
			t.Errorf("got %d definitions, %v", len(all), err)
		}
		for _, d := range all {
			d.Validate([]byte(`{"spec":{"a":[1,{}]}}`), false)
			d.Schema.Unknown([]byte(`{"spec":{"a":[1,{}]}}`))
		}
	})
}
