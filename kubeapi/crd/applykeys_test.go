package crd_test

import (
	"strings"
	"testing"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/crd"
	"github.com/listwatch/listwatch/store/memory"
)

// gateSchema is the schema of a list whose keys have defaults of every type that a key may have.
const gateSchema = `
            gates:
              type: array
              x-kubernetes-list-type: map
              x-kubernetes-list-map-keys: [port, protocol, weight, ratio, open, target]
              items:
                type: object
                required: [port]
                properties:
                  port: {type: integer}
                  name: {type: string}
                  protocol: {type: string, default: TCP}
                  weight: {type: integer, default: 1}
                  ratio: {type: number, default: 0.5}
                  open: {type: boolean, default: false}
                  target: {x-kubernetes-int-or-string: true, default: 80}`

// newAPI returns an api with the definitions in text.
func newAPI(t *testing.T, text string) *api {
	t.Helper()
	definitions, err := crd.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	db, a := memory.Open(memory.Options{}), &api{handler: kubeapi.Handler{}}
	for _, d := range definitions {
		c, err := db.Collection(d.CollectionSpec())
		if err == nil {
			err = d.AddTo(&a.handler, c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// wall returns the definition of the kind Wall, whose spec has the given properties.
func wall(properties string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: walls.demo.example.com}
spec:
  group: demo.example.com
  scope: Cluster
  names: {plural: walls, kind: Wall}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:` + strings.ReplaceAll(properties, "\n", "\n  ")
}

const walls = "/apis/demo.example.com/v1/walls"

// A list element has the same key with and without the defaults of its keys.
func TestApplyKnowsTheDefaultsOfKeys(t *testing.T) {
	const (
		short = `{"name":"a","port":80}`
		long  = `{"name":"b","open":false,"port":80,"protocol":"TCP","ratio":0.5,"target":80,"weight":1}`
		other = `{"open":true,"port":80,"protocol":"UDP","ratio":1.5,"target":"http","weight":2}`
	)
	for _, c := range []struct{ name, first, second, third, want string }{
		{"repeat", "x " + short, "x " + short, "x " + short, short},
		{"spell out", "x " + short, "x " + long, "x " + long, long},
		{"leave out", "x " + long, "x {\"port\":80}", "x " + short, `{"name":"a","port":80}`},
		{
			"share", "x " + short, "y " + `{"port":80,"protocol":"TCP"}`, "y " + `{"port":80,"target":80}`,
			`{"name":"a","port":80,"target":80}`,
		},
		{"remove", "x " + short, "y " + other, "x ", other},
		{
			"stored in full", " " + `{"port":80,"protocol":"TCP"}`, "x " + short, "x " + short,
			`{"name":"a","port":80,"protocol":"TCP"}`,
		},
		{"stored short", " " + `{"port":80}`, "x " + long, "x " + long, long},
		{"change owner", "x " + short, "y " + long + "!", "x ", long},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAPI(t, wall(gateSchema))
			got := ""
			for i, step := range []string{c.first, c.second, c.third} {
				manager, gates, _ := strings.Cut(step, " ")
				path := walls + "/w?fieldManager=" + manager
				if forced, ok := strings.CutSuffix(gates, "!"); ok {
					path, gates = path+"&force=true", forced
				}
				code := 200
				if i == 0 {
					code = 201
				}
				method, mediaType := "PATCH", applyPatch
				if manager == "" {
					method, path, mediaType = "POST", walls, "application/json"
				}
				got = a.want(t, code, method, path, mediaType,
					`{"apiVersion":"demo.example.com/v1","kind":"Wall","metadata":{"name":"w"},"spec":{"gates":[`+
						gates+`]}}`)
			}
			_, spec, _ := strings.Cut(got, `"gates":[`)
			if gates, _, _ := strings.Cut(spec, `]`); gates != c.want {
				t.Errorf("got the gates %s, want %s", gates, c.want)
			}
		})
	}
}

// As in Kubernetes, any field may be in an object whose schema has no properties.
func TestApplyAcceptsFieldsOfObjectsWithoutProperties(t *testing.T) {
	a := newAPI(t, wall(`
            note: {type: object}
            size:
              type: object
              properties:
                width: {type: integer}`))
	apply := func(code int, spec string) {
		t.Helper()
		a.want(t, code, "PATCH", walls+"/w?fieldManager=x", applyPatch,
			`{"apiVersion":"demo.example.com/v1","kind":"Wall","metadata":{"name":"w"},"spec":{`+spec+`}}`)
	}
	apply(201, `"note":{"any":{"thing":1}},"size":{"width":1}`)
	apply(200, `"note":{"other":[2]}`)
	apply(400, `"size":{"height":1}`)
	apply(400, `"note":{"any":1},"hight":1`)
}
