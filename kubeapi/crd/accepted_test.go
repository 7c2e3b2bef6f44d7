package crd_test

import (
	"strings"
	"testing"

	"github.com/listwatch/listwatch/kubeapi/crd"
)

// Kubernetes serves the resources of these definitions, so they must be usable here, too.
func TestUnusualDefinitionsAreServed(t *testing.T) {
	const object = `{"apiVersion":"demo.example.com/VERSION","kind":"KIND","metadata":{"name":"w"},"spec":{"a":1}}`
	for _, c := range []struct{ name, old, new, version, kind string }{
		{"version without a number", "name: v1", "name: match", "match", "Wall"},
		{"version with a minus", "name: v1", "name: stable-2", "stable-2", "Wall"},
		{"kind in lower case", "kind: Wall", "kind: wall-like", "v1", "wall-like"},
		{"unusual kind of lists", "kind: Wall}", "kind: Wall, listKind: ManyWalls}", "v1", "Wall"},
		{
			"storage version that is not served", "  - name: v1\n    served: true\n    storage: true\n",
			"  - {name: v0, served: false, storage: true, schema: {openAPIV3Schema: {type: object}}}\n  - name: v1\n    served: true\n    storage: false\n",
			"v1", "Wall",
		},
		{
			"filter", "    schema:\n",
			"    additionalPrinterColumns: [{name: A, type: integer, jsonPath: '.s.t[?(@.latest==true)].percent'}]\n    schema:\n",
			"v1", "Wall",
		},
		{
			"column that nobody understands", "    schema:\n",
			"    additionalPrinterColumns: [{name: A, type: integer, jsonPath: .a}, {name: B, type: integer, jsonPath: '.s[?('}]\n    schema:\n",
			"v1", "Wall",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(wall("\n            a: {type: integer}"), c.old, c.new, 1)
			a := newAPI(t, text)
			path := strings.Replace(walls, "v1", c.version, 1)
			body := strings.NewReplacer("VERSION", c.version, "KIND", c.kind).Replace(object)
			a.want(t, 201, "POST", path, "application/json", body)
			wantText(t, a.want(t, 200, "GET", path, "", "", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1"),
				`"cells":["w",`)
			wantText(t, a.want(t, 200, "GET", "/apis/demo.example.com", "", ""), `"version":"`+c.version+`"`)
		})
	}
}

func TestColumnsEndAtAPathThatIsNotUnderstood(t *testing.T) {
	text := strings.Replace(wall("\n            a: {type: integer}"), "    schema:\n",
		"    additionalPrinterColumns: [{name: A, type: integer, jsonPath: .a}, {name: B, type: integer, jsonPath: '.s[?('}, {name: C, type: integer, jsonPath: .c}]\n    schema:\n", 1)
	all, err := crd.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := all[0]; len(d.Columns) != 1 || len(d.Ignored) != 1 || !strings.Contains(d.Ignored[0], `column "B"`) {
		t.Errorf("got the columns %+v and %q, want column A, and a text about B", d.Columns, d.Ignored)
	}
}

func TestElementsOfAnArrayMayPreserveUnknownFields(t *testing.T) {
	a := newAPI(t, wall(`
            steps: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object}}`))
	const spec = `"spec":{"steps":[{"config.string":{"any":[1]}}]}`
	body := `{"apiVersion":"demo.example.com/v1","kind":"Wall","metadata":{"name":"NAME"},` + spec + `}`
	applied := strings.Replace(body, "NAME", "w", 1)
	wantText(t, a.want(t, 201, "PATCH", walls+"/w?fieldManager=m", "application/apply-patch+yaml", applied), spec)
	created := strings.Replace(body, "NAME", "x", 1)
	wantText(t, a.want(t, 201, "POST", walls+"?fieldValidation=Strict", "application/json", created), spec)
}

// As in Kubernetes, values are validated with their defaults.
func TestAlternativesSeeDefaults(t *testing.T) {
	a := newAPI(t, wall(`
            addresses:
              type: array
              x-kubernetes-list-type: map
              x-kubernetes-list-map-keys: [value, type]
              items:
                type: object
                required: [value, type]
                properties:
                  value: {type: string}
                  type: {type: string, default: IPAddress, nullable: false}
                oneOf:
                - properties: {type: {enum: [IPAddress]}, value: {pattern: "^[0-9.]+$"}}
                - properties: {type: {not: {enum: [IPAddress]}}}
            nested: {type: object, default: {size: 1}, required: [size], properties: {size: {type: integer}}}
            map: {type: object, additionalProperties: {type: string, default: x, minLength: 1}}`))
	create := func(code int, name, spec string) string {
		return a.want(t, code, "POST", walls, "application/json",
			`{"apiVersion":"demo.example.com/v1","kind":"Wall","metadata":{"name":"`+name+`"},"spec":`+spec+`}`)
	}
	got := create(201, "a", `{"addresses":[{"value":"192.0.2.1"}]}`)
	wantText(t, got, `"addresses":[{"value":"192.0.2.1"}]`)
	create(201, "b", `{"addresses":[{"value":"192.0.2.1","type":null}],"nested":null,"map":{"a":null}}`)
	create(422, "c", `{"addresses":[{"value":"host"}]}`)
	create(201, "d", `{"addresses":[{"value":"host","type":"Hostname"}]}`)
	create(422, "e", `{"nested":{}}`)
	wantText(t, create(422, "f", `{"addresses":[{"value":"192.0.2.1"},{"value":"192.0.2.1","type":"IPAddress"}]}`),
		"Duplicate value")
}

// Without the subresource, the status is an ordinary field.
func TestStatusWithoutSubresourceRaisesGeneration(t *testing.T) {
	text := strings.Replace(wall("\n            a: {type: integer}"), "properties:\n          spec:",
		"properties:\n          status: {type: object, properties: {b: {type: integer}}}\n          spec:", 1)
	for name, c := range map[string]struct{ text, want string }{
		"none": {text, `"generation":2`},
		"declared": {
			strings.Replace(text, "    schema:\n", "    subresources: {status: {}}\n    schema:\n", 1),
			`"generation":1`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, c.text)
			a.want(t, 201, "POST", walls, "application/json",
				`{"apiVersion":"demo.example.com/v1","kind":"Wall","metadata":{"name":"w"},"spec":{"a":1}}`)
			wantText(t, a.want(t, 200, "PATCH", walls+"/w", mergePatch, `{"status":{"b":1}}`), c.want)
		})
	}
}
