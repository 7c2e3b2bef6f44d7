package kubeapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store/memory"
)

const applyType = "application/apply-patch+yaml"

// applied sends a server-side apply in the name of the given manager and returns the body of the
// response.
func (a *testServer) applied(t *testing.T, code int, path, manager, config string) string {
	t.Helper()
	return a.want(t, code, "PATCH", path+"?fieldManager="+manager, config, "Content-Type", applyType)
}

// managers returns the managers of an object with their operations and subresources, sorted.
func managers(t *testing.T, object string) []string {
	t.Helper()
	var o struct {
		Metadata struct {
			ManagedFields []struct{ Manager, Operation, Subresource string }
		}
	}
	if err := json.Unmarshal([]byte(object), &o); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range o.Metadata.ManagedFields {
		all = append(all, strings.TrimSpace(m.Manager+" "+m.Operation+" "+m.Subresource))
	}
	slices.Sort(all)
	return all
}

func wantManagers(t *testing.T, object string, want ...string) {
	t.Helper()
	if got := managers(t, object); !slices.Equal(got, want) {
		t.Errorf("got managers %q, want %q: %s", got, want, object)
	}
}

const webConfig = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  template:
    spec:
      containers:
      - name: a
        image: "1"
        ports: [{containerPort: 80}]
`

func TestApplyCreatesAndMerges(t *testing.T) {
	a := startServer(t, nil)
	const path = deployments + "/web"
	created := a.applied(t, 201, path, "one", webConfig)
	wantManagers(t, created, "one Apply")
	if !strings.Contains(created, `"k:{\"containerPort\":80,\"protocol\":\"TCP\"}"`) {
		t.Errorf("got %s, want ports by containerPort and protocol", created)
	}
	if again := a.applied(t, 200, path, "one", webConfig); again != created {
		t.Errorf("got %s, want no write", again)
	}
	merged := a.applied(t, 200, path, "two", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},`+
		`"spec":{"template":{"spec":{"containers":[{"name":"b","image":"2"}]}}}}`)
	wantManagers(t, merged, "one Apply", "two Apply")
	if !strings.Contains(merged, `"name":"a"`) || !strings.Contains(merged, `"name":"b"`) {
		t.Errorf("got %s, want both containers", merged)
	}
	// A field is removed when its manager no longer applies it.
	removed := a.applied(t, 200, path, "one",
		strings.Replace(webConfig, "labels: {app: web}", "annotations: {n: x}", 1))
	if strings.Contains(removed, `"labels"`) || !strings.Contains(removed, `"annotations":{"n":"x"}`) {
		t.Errorf("got %s, want the annotation instead of the label", removed)
	}
}

func TestApplyConflictsNameFieldsAndManagers(t *testing.T) {
	a := startServer(t, nil)
	const path = deployments + "/web"
	a.applied(t, 201, path, "one", webConfig)
	config := strings.Replace(strings.Replace(webConfig, "replicas: 1", "replicas: 2", 1), `image: "1"`,
		`image: "2"`, 1)
	s := a.wantError(t, 409, "Conflict", "PATCH", path+"?fieldManager=two", config, "Content-Type", applyType)
	want := []listwatch.Cause{
		{Reason: "FieldManagerConflict", Message: `conflict with "one"`, Field: ".spec.replicas"},
		{
			Reason: "FieldManagerConflict", Message: `conflict with "one"`,
			Field: `.spec.template.spec.containers[name="a"].image`,
		},
	}
	if s.Details == nil || !slices.Equal(s.Details.Causes, want) {
		t.Errorf("got %+v, want the causes %+v", s.Details, want)
	}
	forced := a.want(t, 200, "PATCH", path+"?fieldManager=two&force=true", config, "Content-Type", applyType)
	if !strings.Contains(forced, `"replicas":2`) {
		t.Errorf("got %s, want two replicas", forced)
	}
	wantManagers(t, forced, "one Apply", "two Apply")
}

func TestInvalidAppliesChangeNothing(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("x"))
	const config = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":{"a":"b"}}}`
	for _, c := range []refusal{
		{path: "/x", body: config, code: 422, kind: "PatchOptions", causes: []string{"fieldManager"}},
		{
			path: "/x?fieldManager=" + strings.Repeat("m", 129), body: config, code: 422, kind: "PatchOptions",
			causes: []string{"fieldManager"},
		},
		{path: "/x?fieldManager=m&dryRun=", body: config, code: 422, kind: "PatchOptions", causes: []string{"dryRun"}},
		{path: "/x?fieldManager=m", body: `{"metadata":{"name":"x"}}`, code: 400},
		{path: "/x?fieldManager=m", body: strings.Replace(config, `"v1"`, `"v2"`, 1), code: 400},
		{path: "/x?fieldManager=m", body: strings.Replace(config, "Pod", "Service", 1), code: 400},
		{path: "/x?fieldManager=m", body: strings.Replace(config, `"x"`, `"y"`, 1), code: 400},
		{path: "/y?fieldManager=m", body: config, code: 400},
		{
			path: "/x?fieldManager=m", body: strings.Replace(config, `"labels"`, `"managedFields":[],"labels"`, 1),
			code: 400,
		},
		{path: "/x?fieldManager=m", body: `{"apiVersion":`, code: 400},
		{path: "/x?fieldManager=m", body: `[]`, code: 400},
		{
			path: "/x?fieldManager=m&fieldValidation=Strict",
			body: strings.Replace(config, `"labels"`, `"name":"x","labels"`, 1), code: 400,
		},
		{
			path: "/x?fieldManager=m&fieldValidation=Strict",
			body: strings.Replace(config, `"metadata"`, `"spec":{"contaners":[]},"metadata"`, 1), code: 400,
		},
		{
			path: "/x?fieldManager=m", body: strings.Replace(config, `"a":"b"`, `"a":"not valid"`, 1), code: 422,
			kind: "Pod", causes: []string{"metadata.labels"},
		},
		{path: "/x?fieldManager=m", body: strings.Replace(config, `"metadata"`, `"spec":7,"metadata"`, 1), code: 400},
		{
			path: "/x?fieldManager=m", body: strings.Replace(config, `"labels"`, `"resourceVersion":"1","labels"`, 1),
			code: 409, kind: "pods",
		},
		{
			path: "/new?fieldManager=m", body: strings.Replace(config, `"x"`, `"new","uid":"u"`, 1), code: 409,
			kind: "pods",
		},
	} {
		c.method, c.path, c.mediaType = "PATCH", pods+c.path, applyType
		c.check(t, a)
	}
	a.wantError(t, 404, "NotFound", "PATCH", pods+"/new/status?fieldManager=m",
		strings.Replace(config, `"x"`, `"new"`, 1), "Content-Type", applyType)
	a.want(t, 201, "PATCH", pods+"/new?fieldManager=m&dryRun=All", strings.Replace(config, `"x"`, `"new"`, 1),
		"Content-Type", applyType)
	a.want(t, 200, "PATCH", pods+"/x?fieldManager=m&dryRun=All", config, "Content-Type", applyType)
	if got := a.want(t, 200, "GET", pods, ""); strings.Contains(got, "new") || strings.Contains(got, "managedFields") {
		t.Errorf("got %s, want nothing written by a dry run", got)
	}
}

func TestObjectsAreTrackedFromTheFirstApply(t *testing.T) {
	a := startServer(t, nil)
	created := a.want(t, 201, "POST", gadgets+"?fieldManager=creator",
		`{"metadata":{"name":"x"},"spec":{"b":9007199254740993,"a":1.0,"list":[1,2]}}`)
	wantManagers(t, created)
	config := func(spec string) string {
		return `{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"x"},"spec":` + spec + `}`
	}
	s := a.wantError(t, 409, "Conflict", "PATCH", gadgets+"/x?fieldManager=m", config(`{"a":2}`), "Content-Type",
		applyType)
	if !strings.Contains(s.Message, `"before-first-apply"`) {
		t.Errorf("got %q, want a conflict with before-first-apply", s.Message)
	}
	applied := a.applied(t, 200, gadgets+"/x", "m", config(`{"c":9007199254740993}`))
	wantManagers(t, applied, "before-first-apply Update", "m Apply")
	if !strings.Contains(applied, `"spec":{"b":9007199254740993,"a":1.0,"list":[1,2],"c":9007199254740993}`) {
		t.Errorf("got %s, want the members as they were, and the exact numbers", applied)
	}
	// Writes other than an apply store the spec exactly as it was sent.
	body := `{"metadata":{"name":"x"},"spec":{"z":1.0,"c":9007199254740993,"b":18446744073709551617}}`
	updated := a.want(t, 200, "PUT", gadgets+"/x?fieldManager=updater", body)
	wantManagers(t, updated, "before-first-apply Update", "m Apply", "updater Update")
	if !strings.Contains(updated, `"spec":{"z":1.0,"c":9007199254740993,"b":18446744073709551617}`) {
		t.Errorf("got %s, want the bytes of the update", updated)
	}
	patched := a.want(t, 200, "PATCH", gadgets+"/x?fieldManager=patcher", `{"spec":{"z":2.0}}`, "Content-Type",
		mergePatchType)
	wantManagers(t, patched, "before-first-apply Update", "m Apply", "patcher Update", "updater Update")
	if same := a.want(t, 200, "PATCH", gadgets+"/x?fieldManager=other", `{}`, "Content-Type",
		mergePatchType); same != patched {
		t.Errorf("got %s, want no write by an empty patch", same)
	}
	status := a.want(t, 200, "PUT", gadgets+"/x/status?fieldManager=controller",
		`{"metadata":{"name":"x"},"status":{"ready":true}}`)
	wantManagers(t, status, "before-first-apply Update", "controller Update status", "m Apply", "patcher Update",
		"updater Update")
	reset := a.want(t, 200, "PATCH", gadgets+"/x", `{"metadata":{"managedFields":[{}]}}`, "Content-Type",
		mergePatchType)
	wantManagers(t, reset)
}

// withColor is a [Resource.Complete] that adds the color red.
func withColor(object []byte, _ bool) ([]byte, error) {
	if bytes.Contains(object, []byte(`"color"`)) {
		return object, nil
	}
	return rawjson.Merge(object, []byte(`{"spec":{"color":"red"}}`))
}

func TestOnlyUpdatesOwnDefaults(t *testing.T) {
	const path = "/apis/demo.example.com/v1/lamps"
	a := startServer(t, func(h *Handler) {
		lamp := Resource{
			Group: "demo.example.com", Version: "v1", Plural: "lamps", Kind: "Lamp", Complete: withColor,
		}
		c := testkit.Must(memory.Open(memory.Options{}).Collection(lamp.CollectionSpec()))(t)
		if err := h.Add(lamp, c); err != nil {
			t.Fatal(err)
		}
	})
	config := func(spec string) string {
		return `{"apiVersion":"demo.example.com/v1","kind":"Lamp","metadata":{"name":"x"},"spec":` + spec + `}`
	}
	a.applied(t, 201, path+"/x", "m", config(`{"size":1}`))
	blue := a.applied(t, 200, path+"/x", "n", config(`{"color":"blue"}`))
	wantManagers(t, blue, "m Apply", "n Apply")
	// The update replaces the color by the default, so that its manager owns it.
	a.want(t, 200, "PUT", path+"/x?fieldManager=updater", config(`{"size":1}`))
	s := a.wantError(t, 409, "Conflict", "PATCH", path+"/x?fieldManager=n", config(`{"color":"green"}`), "Content-Type",
		applyType)
	if !strings.Contains(s.Message, `"updater"`) {
		t.Errorf("got %q, want a conflict with the updater", s.Message)
	}
}

func TestTrackerRemovesManagersOfRemovedFields(t *testing.T) {
	gadget := testkit.Must(ParseResource("gadgets.v1.demo.example.com=Gadget,cluster"))(t)
	a := startServer(t, nil)
	created := a.applied(t, 201, gadgets+"/x", "m",
		`{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"x"},"spec":{"a":1,"b":2}}`)
	track := gadget.Tracker("controller")
	next := strings.Replace(created, `"spec":{"a":1,"b":2}`, `"spec":{"a":2}`, 1)
	got := string(testkit.Must(track([]byte(created), []byte(next)))(t))
	wantManagers(t, got, "controller Update", "m Apply")
	if n := strings.Count(got, `"f:a"`); n != 1 || strings.Contains(got, `"f:b"`) {
		t.Errorf("got %s, want one manager of a, and none of b", got)
	}
	const untracked = `{"metadata":{"name":"x"},"spec":{}}`
	if got := testkit.Must(track([]byte(untracked), []byte(untracked)))(t); string(got) != untracked {
		t.Errorf("got %s, want an object without managedFields as it was", got)
	}
}

func TestFirstApplyAttributesNoDeletion(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", gadgets, `{"metadata":{"name":"x","finalizers":["a/b"]},"spec":{"a":1}}`)
	a.want(t, 200, "DELETE", gadgets+"/x", "")
	applied := a.applied(t, 200, gadgets+"/x", "m",
		`{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"x"},"spec":{"b":1}}`)
	wantManagers(t, applied, "before-first-apply Update", "m Apply")
	if strings.Contains(applied, `"f:deletion`) {
		t.Errorf("got %s, want no manager of the deletion", applied)
	}
}

func TestManagedFieldsBeginWithTheCreation(t *testing.T) {
	a := startServer(t, func(h *Handler) { h.ManagedFields = true })
	const spec = `"spec":{"b":9007199254740993,"a":1.0}`
	created := a.want(t, 201, "POST", gadgets+"?fieldManager=creator", `{"metadata":{"name":"x","labels":{}},`+spec+`}`)
	wantManagers(t, created, "creator Update")
	if !strings.Contains(created, spec) {
		t.Errorf("got %s, want the bytes of the create", created)
	}
	dry := a.want(t, 201, "POST", gadgets+"?dryRun=All", `{"metadata":{"name":"y"},"spec":{"a":1}}`, "User-Agent",
		"program/1.0")
	wantManagers(t, dry, "program Update")
	patched := a.want(t, 200, "PATCH", gadgets+"/x?fieldManager=patcher", `{"spec":{"a":2}}`, "Content-Type",
		mergePatchType)
	wantManagers(t, patched, "creator Update", "patcher Update")
	config := `{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"x"},"spec":{"a":3,"b":1}}`
	s := a.wantError(t, 409, "Conflict", "PATCH", gadgets+"/x?fieldManager=m", config, "Content-Type", applyType)
	if !strings.Contains(s.Message, `"creator"`) || !strings.Contains(s.Message, `"patcher"`) {
		t.Errorf("got %q, want conflicts with both managers", s.Message)
	}
	// As in Kubernetes, an object whose managedFields were removed gets none by an update.
	reset := a.want(t, 200, "PATCH", gadgets+"/x", `{"metadata":{"managedFields":[{}]}}`, "Content-Type",
		mergePatchType)
	wantManagers(t, reset)
	wantManagers(t, a.want(t, 200, "PUT", gadgets+"/x", `{"metadata":{"name":"x"},"spec":{"a":4}}`))
}

func TestApplyKeepsOrderAndSpelling(t *testing.T) {
	a := startServer(t, nil)
	const spec = `"spec":{"z":1.50,"b":18446744073709551617,"a":{"y":1,"x":[{"d":1,"c":1e2}]}}`
	a.want(t, 201, "POST", gadgets, `{"status":{"s":2,"r":1},`+spec+`,"metadata":{"name":"x"}}`)
	config := `{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"x"},"spec":{"z":1.5},"status":{"r":1}}`
	for _, path := range []string{gadgets + "/x", gadgets + "/x/status"} {
		tracked := a.applied(t, 200, path, "m", config)
		if !strings.Contains(tracked, spec) || !strings.Contains(tracked, `"generation":1`) ||
			!strings.Contains(tracked, `"status":{"s":2,"r":1}`) {
			t.Errorf("%s: got %s, want the same content and generation", path, tracked)
		}
		if again := a.applied(t, 200, path, "m", config); again != tracked {
			t.Errorf("%s: got %s, want no write", path, again)
		}
	}
	changed := a.applied(t, 200, gadgets+"/x", "m",
		strings.Replace(config, `{"z":1.5}`, `{"z":1.5,"n":2,"a":{"w":3}}`, 1))
	if !strings.Contains(changed,
		`"spec":{"z":1.50,"b":18446744073709551617,"a":{"y":1,"x":[{"d":1,"c":1e2}],"w":3},"n":2}`) {
		t.Errorf("got %s, want only the new members changed", changed)
	}
}

func TestApplyToStatusChangesOnlyStatus(t *testing.T) {
	a := startServer(t, nil)
	a.applied(t, 201, pods+"/x", "one",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"nodeName":"n"}}`)
	got := a.applied(t, 200, pods+"/x/status", "two",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"nodeName":"m"},"status":{"phase":"Running"}}`)
	wantManagers(t, got, "one Apply", "two Apply status")
	if !strings.Contains(got, `"nodeName":"n"`) || !strings.Contains(got, `"status":{"phase":"Running"}`) {
		t.Errorf("got %s, want only the status changed", got)
	}
}

func TestApplyToScaleOwnsReplicas(t *testing.T) {
	a := startServer(t, nil)
	a.applied(t, 201, deployments+"/web", "one", webConfig)
	const scale = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web"},"spec":{"replicas":5}}`
	a.wantError(t, 409, "Conflict", "PATCH", webScale+"?fieldManager=two", scale, "Content-Type", applyType)
	got := a.want(t, 200, "PATCH", webScale+"?fieldManager=two&force=true", scale, "Content-Type", applyType)
	if !strings.Contains(got, `"kind":"Scale"`) || !strings.Contains(got, `"spec":{"replicas":5}`) {
		t.Errorf("got %s, want the scale", got)
	}
	wantManagers(t, a.want(t, 200, "GET", deployments+"/web", ""), "one Apply", "two Apply scale")
	a.want(t, 200, "PUT", webScale+"?fieldManager=hpa", strings.Replace(scale, "5", "6", 1))
	wantManagers(t, a.want(t, 200, "GET", deployments+"/web", ""), "hpa Update scale", "one Apply")
}

// Another program, or an earlier write, may have stored fields that are not in the schema, and
// elements that are not unique.
func TestStoredOdditiesDoNotHinderApply(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods,
		`{"metadata":{"name":"x"},"mine":[{"a":1}],"spec":{"odd":{"b":2},"containers":[{"name":"c"},{"name":"c"}]}}`)
	got := a.applied(t, 200, pods+"/x", "m",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"nodeName":"n"}}`)
	if !strings.Contains(got, `"mine":[{"a":1}]`) || !strings.Contains(got, `"odd":{"b":2}`) {
		t.Errorf("got %s, want the unknown fields", got)
	}
}

func TestScaleIsTrackedIfReplicasAreManaged(t *testing.T) {
	a := startServer(t, nil)
	const unmanaged = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {paused: true}\n"
	a.applied(t, 201, deployments+"/web", "ada", unmanaged)
	a.want(t, 200, "PATCH", webScale+"?fieldManager=bob", `{"spec":{"replicas":2}}`, "Content-Type", mergePatchType)
	wantManagers(t, a.want(t, 200, "GET", deployments+"/web", ""), "ada Apply")
	a.applied(t, 200, deployments+"/web", "ada",
		strings.Replace(unmanaged, "paused: true", "paused: true, replicas: 3", 1))
	a.want(t, 200, "PATCH", webScale+"?fieldManager=bob", `{"spec":{"replicas":4}}`, "Content-Type", mergePatchType)
	wantManagers(t, a.want(t, 200, "GET", deployments+"/web", ""), "ada Apply", "bob Update scale")
}

func TestOddConfigurationsApplyAsInKubernetes(t *testing.T) {
	a := startServer(t, nil)
	config := func(metadata string) string {
		return `{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"x"` + metadata + `},"spec":{}}`
	}
	got := a.applied(t, 201, gadgets+"/x", "m", config(`,"creationTimestamp":"today"`))
	if m := metadata(t, got); m.CreationTimestamp == nil {
		t.Errorf("got %+v, want a creationTimestamp", m)
	}
	a.wantError(t, 400, "BadRequest", "PATCH", gadgets+"/x?fieldManager=m", config(`,"resourceVersion":"abc"`),
		"Content-Type", applyType)
}

func TestUnknownFieldsOfAppliesAreNamedAsInKubernetes(t *testing.T) {
	a := startServer(t, nil)
	const object = "failed to create typed patch object (default/x; /v1, Kind=Pod): "
	for spec, want := range map[string]string{
		`"contaners":[]`: ".spec.contaners: field not declared in schema",
		`"contaners":[],"nodeNme":1`: "errors:\n  .spec.contaners: field not declared in schema\n" +
			"  .spec.nodeNme: field not declared in schema",
	} {
		config := `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"x"},"spec":{` + spec + `}}`
		s := a.wantError(t, 400, "BadRequest", "PATCH", pods+"/x?fieldManager=m", config, "Content-Type", applyType)
		if s.Message != object+want {
			t.Errorf("got %q, want %q", s.Message, object+want)
		}
	}
}

func TestApplyToScaleWithoutReplicasKeepsThem(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", deployments, webDeployment)
	const scale = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web"}}`
	if got := a.applied(t, 200, webScale, "m", scale); !strings.Contains(got, `"spec":{"replicas":2}`) {
		t.Errorf("got %s, want the replicas unchanged", got)
	}
}
