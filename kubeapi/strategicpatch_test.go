package kubeapi

import (
	"strings"
	"testing"

	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/store/memory"
)

// strategicPatch sends a strategic merge patch in the way kubectl apply, edit and set image
// do.
func (a *testServer) strategicPatch(t *testing.T, path, patch string) string {
	t.Helper()
	return a.want(t, 200, "PATCH", path, patch, "Content-Type", strategicPatchType)
}

func TestStrategicPatchMergesListsByKey(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", deployments,
		`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","finalizers":["example.com/a"]},"spec":{"odd":9007199254740993,`+
			`"strategy":{"type":"RollingUpdate","rollingUpdate":{}},`+
			`"template":{"spec":{"containers":[{"name":"app","image":"app:1","env":[{"name":"A","value":"1"}],"args":["x"]},{"name":"side","image":"side:1"}]}}}}`)
	got := a.strategicPatch(t, deployments+"/web",
		`{"metadata":{"finalizers":["example.com/b"]},"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"},"template":{"spec":{`+
			`"$setElementOrder/containers":[{"name":"app"},{"name":"new"}],`+
			`"containers":[{"name":"app","image":"app:2","env":[{"name":"B","value":"2"}],"args":["y"]},{"name":"new","image":"new:1"},{"$patch":"delete","name":"side"}]}}}}`)
	for _, want := range []string{
		`"finalizers":["example.com/b","example.com/a"]`, `"odd":9007199254740993`, `"strategy":{"type":"Recreate"}`,
		`"containers":[{"name":"app","image":"app:2","env":[{"name":"B","value":"2"},{"name":"A","value":"1"}],"args":["y"]},{"name":"new","image":"new:1"}]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want it to contain %s", got, want)
		}
	}
	same := a.strategicPatch(t, deployments+"/web", `{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`)
	if same != got {
		t.Errorf("got %s, want the object unchanged by a patch without changes", same)
	}
}

func TestStrategicPatchOfSubresource(t *testing.T) {
	a := startServer(t, nil)
	const pod = "/api/v1/namespaces/default/pods"
	a.want(t, 201, "POST", pod,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"one"},"spec":{"n":1},"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Other"}]}}`)
	got := a.strategicPatch(t, pod+"/one/status",
		`{"spec":{"n":2},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	if !strings.HasSuffix(got,
		`"spec":{"n":1},"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Other"}]}}`+"\n") {
		t.Errorf("got %s, want only one condition changed", got)
	}
	a.want(t, 201, "POST", deployments,
		`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web"},"spec":{"replicas":1}}`)
	if got := a.strategicPatch(t, deployments+"/web/scale", `{"spec":{"replicas":3}}`); !strings.Contains(got,
		`"spec":{"replicas":3}`) {
		t.Errorf("got %s, want three replicas", got)
	}
}

func TestStrategicPatchErrorNamesField(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", deployments,
		`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web"},"spec":{"template":{"spec":{"containers":[{"name":"app"}]}}},"odd":{}}`)
	for patch, want := range map[string]struct {
		code          int
		reason, field string
	}{
		`{"spec":{"template":{"spec":{"containers":[{"image":"app:2"}]}}}}`: {
			400, "BadRequest",
			"spec.template.spec.containers[0].name",
		},
		`{"$setElementOrder/odd":[{"name":"a"}]}`: {
			422,
			"Invalid", "odd",
		},
		`{"spec":{"template":{"spec":{"containers":[{"name":"app","$patch":"remove"}]}}}}`: {
			400, "BadRequest",
			"spec.template.spec.containers[0].$patch",
		},
		`{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate","rollingUpdate":{"a":1}}}}`: {
			400, "BadRequest",
			"spec.strategy.rollingUpdate",
		},
	} {
		s := a.wantError(t, want.code, want.reason, "PATCH", deployments+"/web", patch, "Content-Type",
			strategicPatchType)
		if !strings.Contains(s.Message, want.field) || s.Details == nil || len(s.Details.Causes) != 1 ||
			s.Details.Causes[0].Field != want.field {
			t.Errorf("%s: got %+v, want %s as the cause", patch, s, want.field)
		}
	}
	a.wantError(t, 422, "Invalid", "PATCH", deployments+"/web", `{"metadata":{"uid":"other"}}`, "Content-Type",
		strategicPatchType)
}

func TestStrategicPatchNeedsSchema(t *testing.T) {
	a := startServer(t, nil)
	const gadgets = "/apis/demo.example.com/v1/gadgets"
	a.want(t, 201, "POST", gadgets, `{"kind":"Gadget","apiVersion":"demo.example.com/v1","metadata":{"name":"one"}}`)
	s := a.wantError(t, 415, "UnsupportedMediaType", "PATCH", gadgets+"/one", `{}`, "Content-Type", strategicPatchType)
	if !strings.Contains(s.Message, "--type=merge") {
		t.Errorf("got %q, want the alternative", s.Message)
	}
}

func TestResourceDeclaresSchema(t *testing.T) {
	r := Resource{
		Group: "demo.example.com", Version: "v1", Plural: "racks", Kind: "Rack",
		Schema: &schema.Type{Fields: map[string]schema.Field{
			"slots": {
				List: true, Merge: true, MergeKey: "number",
				Type: &schema.Type{Fields: map[string]schema.Field{"number": {Scalar: schema.Integer}}},
			},
		}},
	}
	db := memory.Open(memory.Options{})
	a := startServer(t, func(h *Handler) {
		c, err := db.Collection(r.CollectionSpec())
		if err == nil {
			err = h.Add(r, c)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	const racks = "/apis/demo.example.com/v1/racks"
	a.want(t, 201, "POST", racks,
		`{"kind":"Rack","apiVersion":"demo.example.com/v1","metadata":{"name":"one","ownerReferences":[{"uid":"1","kind":"Hall","name":"h","apiVersion":"v1"}]},"slots":[{"number":1,"a":1},{"number":2}]}`)
	got := a.strategicPatch(t, racks+"/one",
		`{"metadata":{"ownerReferences":[{"uid":"1","name":"i"}]},"slots":[{"number":1,"b":2}]}`)
	for _, want := range []string{
		`"slots":[{"number":1,"a":1,"b":2},{"number":2}]`,
		`"ownerReferences":[{"uid":"1","kind":"Hall","name":"i","apiVersion":"v1"}]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want it to contain %s", got, want)
		}
	}
	d := getJSON[openAPIDocument](t, a, "/openapi/v3/apis/demo.example.com/v1")
	d.check(t, racks+"/{name}", *kindOf("demo.example.com", "v1", "Rack"), d.Components.Schemas,
		"#/components/schemas/")
}
