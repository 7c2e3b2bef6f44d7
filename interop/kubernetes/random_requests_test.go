//go:build !race

package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

const (
	jsonPatchType  = "application/json-patch+json"
	mergePatchType = "application/merge-patch+json"
	applyPatchType = "application/apply-patch+yaml"
	strategicType  = "application/strategic-merge-patch+json"
	jsonType       = "application/json"
)

// A request is a request of a random sequence. References in query and body, such as
// @uid(widgets/n/a), stand for values that each server chooses itself.
type request struct {
	// verb is Kubernetes' verb, with the subresource, such as patch or update/status.
	verb string
	// traits lists the special properties of the request: its options, faults and media types.
	traits                                         []string
	method, path, query, contentType, accept, body string
	watch                                          *watchScope // set if the request is a watch
}

// curl returns the request as a command line.
func (r request) curl() string {
	var b strings.Builder
	fmt.Fprintf(&b, "curl -X %s", r.method)
	if r.contentType != "" {
		fmt.Fprintf(&b, " -H 'Content-Type: %s'", r.contentType)
	}
	if r.accept != "" {
		fmt.Fprintf(&b, " -H 'Accept: %s'", r.accept)
	}
	if r.body != "" {
		fmt.Fprintf(&b, " --data-binary '%s'", strings.ReplaceAll(r.body, "'", `'\''`))
	}
	query := ""
	if r.query != "" {
		query = "?" + r.query
	}
	fmt.Fprintf(&b, " \"$S%s%s\"  # %s", r.path, query, r.verb)
	if len(r.traits) > 0 {
		fmt.Fprintf(&b, ": %s", strings.Join(r.traits, ", "))
	}
	return b.String()
}

// String returns the text that rapid prints.
func (r request) String() string { return r.curl() }

// admits reports whether r may have the trait. A request has at most one trait, because servers may
// report several faults in any order.
func (r *request) admits(trait string) bool { return trait == "" || len(r.traits) == 0 }

func (r *request) mark(trait string) {
	if trait != "" && !slices.Contains(r.traits, trait) {
		r.traits = append(r.traits, trait)
	}
}

// A target is the object of a request, or a subresource of that object.
type target struct{ plural, namespace, name, subresource string }

var (
	targets = slices.Concat(
		targetsOf("widgets", "n", "a", "b"), targetsOf("widgets", "m", "a"), targetsOf("gadgets", "", "a"),
		targetsOf("cogs", "n", "a"),
	)
	kinds = map[string]string{"widgets": "Widget", "gadgets": "Gadget", "cogs": "Cog"}
)

func targetsOf(plural, namespace string, names ...string) (all []target) {
	for _, name := range names {
		all = append(all, target{plural: plural, namespace: namespace, name: name})
	}
	return all
}

func (t target) collection() string { return collectionPath(t.plural, t.namespace) }

func (t target) path() string {
	return strings.TrimSuffix(t.collection()+"/"+t.name+"/"+t.subresource, "/")
}

// verb returns the given verb with the subresource of t, such as get/status.
func (t target) verb(verb string) string { return strings.TrimSuffix(verb+"/"+t.subresource, "/") }

// key returns the name of t in references such as @uid(widgets/n/a), which comparedServer.resolve
// replaces.
func (t target) key() string {
	return strings.Trim(t.plural+"/"+t.namespace, "/") + "/" + t.name
}

func collectionPath(plural, namespace string) string {
	if plural == "gadgets" || namespace == "" {
		return "/apis/demo.example.com/v1/" + plural
	}
	return "/apis/demo.example.com/v1/namespaces/" + namespace + "/" + plural
}

// collectionKey returns the name of the collection at path in references; see target.key.
func collectionKey(path string) string { return strings.TrimPrefix(path, "/apis/demo.example.com/v1/") }

// A variant is one of several texts for a part of a request, such as its body or an option. The
// trait of usual texts is empty.
type variant struct{ trait, text string }

// pick returns the empty variant with a probability of usual percent, and otherwise a random
// element of variants.
func pick(t *rapid.T, label string, usual int, variants ...variant) variant {
	if len(variants) == 0 || rapid.IntRange(1, 100).Draw(t, label+"?") <= usual {
		return variant{}
	}
	return rapid.SampledFrom(variants).Draw(t, label)
}

func oneOf[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

// same returns variants whose traits are their texts.
func same(texts ...string) (all []variant) {
	for _, s := range texts {
		all = append(all, variant{s, s})
	}
	return all
}

// usual returns variants without traits.
func usual(texts ...string) (all []variant) {
	for _, s := range texts {
		all = append(all, variant{"", s})
	}
	return all
}

// genRequest returns a generator of requests with any verb.
func genRequest() *rapid.Generator[request] {
	verbs := []func(*rapid.T, target) request{
		genCreate, genCreate, genCreate, genCreate, genUpdate, genUpdate, genMergePatch, genMergePatch, genJSONPatch,
		genApply, genApply, genApply,
		genGet, genList, genDelete, genDelete, genDeleteCollection, genStatus, genStatus, genScale, genWatch,
		genOddRequest,
	}
	return rapid.Custom(func(t *rapid.T) request {
		to := oneOf(t, "target", targets...)
		return oneOf(t, "verb", verbs...)(t, to)
	})
}

// addQuery appends the variant's text to the query.
func (r *request) addQuery(v variant) {
	if !r.admits(v.trait) {
		return
	}
	if v.text != "" {
		r.query = strings.Trim(r.query+"&"+v.text, "&")
	}
	r.mark(v.trait)
}

var (
	writeOptions = append(slices.Concat(usual(
		"dryRun=All", "dryRun=All", "dryRun=All", "fieldValidation=Strict", "fieldValidation=Strict",
		"fieldValidation=Warn", "fieldValidation=Ignore", "fieldValidation=",
		"pretty=true", "pretty=yes", "unknown=1", "timeout=10s", "watch=bad", "resourceVersion=abc",
	), same(
		"dryRun=", "dryRun=None", "dryRun=All&dryRun=All", "fieldValidation=bad", "fieldManager=", "fieldManager=m%01",
		"force=true", "force=bad",
	)), variant{"fieldManager too long", "fieldManager=" + strings.Repeat("m", 129)})
	readOptions = append(usual(
		"pretty=true", "pretty=yes", "resourceVersion=0", "unknown=1", "timeoutSeconds=10", "fieldSelector=bad",
		"limit=1", "watch", "watch=true&resourceVersion=0", "watch=bad",
	), variant{"resourceVersion=abc", "resourceVersion=abc"})
	accepts = []variant{
		{"Table", "application/json;as=Table;v=v1;g=meta.k8s.io"},
		{"Accept bad", "garbage"},
		{"Accept any", "*/*"},
		{"PartialObjectMetadata", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
		{"Accept text", "text/html"},
		{"Table v2", "application/json;as=Table;v=v2;g=meta.k8s.io"},
		{"Table or JSON", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"},
	}
	managers = []string{"fieldManager=ada", "fieldManager=bob"}
)

// addWriteOptions draws the options of a write.
func (r *request) addWriteOptions(t *rapid.T) {
	if rapid.Bool().Draw(t, "manager?") {
		r.addQuery(variant{"", oneOf(t, "manager", managers...)})
	}
	r.addQuery(pick(t, "option", 75, writeOptions...))
	r.dropDryRun("version", "version 0", "version bad", "selfLink")
	r.addAccept(t)
}

// dropDryRun removes the option dryRun if r has one of the traits. These traits stand for members
// that Kubernetes drops only when it stores the object, so that the response to a dry run would
// still contain the members.
func (r *request) dropDryRun(traits ...string) {
	if slices.ContainsFunc(traits, func(t string) bool { return slices.Contains(r.traits, t) }) {
		r.query = strings.Trim(strings.ReplaceAll("&"+r.query, "&dryRun=All", ""), "&")
	}
}

func (r *request) addAccept(t *rapid.T) {
	if v := pick(t, "accept", 93, accepts...); r.admits(v.trait) {
		r.accept = v.text
		r.mark(v.trait)
	}
}

func genCreate(t *rapid.T, to target) request {
	r := request{verb: "create", method: "POST", path: to.collection(), contentType: jsonType}
	r.addObject(t, to, false)
	r.addWriteOptions(t)
	return r
}

func genUpdate(t *rapid.T, to target) request {
	r := request{verb: to.verb("update"), method: "PUT", path: to.path(), contentType: jsonType}
	r.addObject(t, to, true)
	r.addWriteOptions(t)
	return r
}

func genApply(t *rapid.T, to target) request {
	r := request{verb: to.verb("apply"), method: "PATCH", path: to.path(), contentType: applyPatchType}
	r.addObject(t, to, false)
	if rapid.IntRange(1, 30).Draw(t, "manager?") > 1 {
		r.addQuery(variant{"", oneOf(t, "manager", managers...)})
	} else {
		r.mark("manager missing")
	}
	if rapid.IntRange(1, 3).Draw(t, "force?") == 1 {
		r.addQuery(variant{"", "force=true"})
	} else if len(r.traits) > 0 {
		// Force the apply, because servers may report a conflict before or after the fault.
		r.query = strings.Trim(r.query+"&force=true", "&")
	}
	r.addQuery(pick(t, "option", 85, writeOptions...))
	r.dropDryRun("version", "version old", "version 0", "version bad", "selfLink")
	r.addAccept(t)
	return r
}

func genMergePatch(t *rapid.T, to target) request {
	r := request{verb: to.verb("patch"), method: "PATCH", path: to.path(), contentType: mergePatchType}
	patches := mergePatches
	if to.subresource == "status" {
		patches = statusPatches
	} else if to.plural != "cogs" {
		patches = append(slices.Clip(patches), `{"spec":{"color":"green"},"status":{"phase":"Both"}}`,
			`{"status":null}`)
	}
	r.setPatch(variant{"", oneOf(t, "patch", patches...)}, to)
	if v := pick(t, "bad patch", 75, badMergePatches...); v.text != "" && r.admits(v.trait) {
		r.setPatch(v, to)
	}
	r.addWriteOptions(t)
	return r
}

// setPatch sets the body of r to the merge patch or JSON patch in v.
func (r *request) setPatch(v variant, to target) {
	r.body = to.fill(v.text)
	r.mark(v.trait)
	if strings.Contains(r.body, "fase") {
		r.mark("unknown field")
	}
}

func genJSONPatch(t *rapid.T, to target) request {
	r := request{verb: to.verb("patch"), method: "PATCH", path: to.path(), contentType: jsonPatchType}
	operations := rapid.SliceOfN(rapid.SampledFrom(jsonOperations), 1, 3).Draw(t, "operations")
	r.setPatch(variant{"", "[" + strings.Join(operations, ",") + "]"}, to)
	if v := pick(t, "bad patch", 75, badJSONPatches...); v.text != "" && r.admits(v.trait) {
		r.setPatch(v, to)
	}
	r.addWriteOptions(t)
	return r
}

func genGet(t *rapid.T, to target) request {
	r := request{verb: to.verb("get"), method: "GET", path: to.path()}
	r.addQuery(pick(t, "option", 75, append(readOptions, variant{"", "resourceVersion=@rv(" + to.key() + ")"})...))
	r.addAccept(t)
	return r
}

func genDelete(t *rapid.T, to target) request {
	r := request{verb: "delete", method: "DELETE", path: to.path()}
	r.addDeleteOptions(t, to)
	r.addAccept(t)
	return r
}

func (r *request) addDeleteOptions(t *rapid.T, to target) {
	if v := pick(t, "option", 75, deleteOptions...); r.verb == "delete" || v.trait != "propagation" {
		r.addQuery(v)
	}
	if v := pick(t, "options in the body", 60, deleteBodies...); v.text != "" && r.admits(v.trait) &&
		(r.verb == "delete" || v.trait != "propagation") {
		r.body, r.contentType = to.fill(v.text), jsonType
		r.mark(v.trait)
		if strings.Contains(r.query, "dryRun") {
			r.mark(dryRunBesideBody)
		}
	}
}

func genDeleteCollection(t *rapid.T, to target) request {
	r := request{verb: "deletecollection", method: "DELETE", path: to.collection()}
	r.addSelectors(t, to)
	r.addDeleteOptions(t, to)
	r.addQuery(pick(t, "list option", 85,
		same("timeoutSeconds=x", "sendInitialEvents=true", "resourceVersion=abc", "resourceVersionMatch=Bad",
			"continue=bad", "watch", "limit=-1", "limit=1", "limit=x", "continue=@continue("+collectionKey(r.path)+")",
			"watch=false")...))
	return r
}

var selectors = []variant{
	{"", "labelSelector=app%3Dx"},
	{"", "labelSelector=app!%3Dx"},
	{"", "labelSelector=app"},
	{"", "labelSelector=!app"},
	{"", "labelSelector=app%20in%20(x,y)"},
	{"", "labelSelector=app%20notin%20(x)"},
	{"", "fieldSelector=metadata.name%3Da"},
	{"", "fieldSelector=metadata.name!%3Da"},
	{"", "fieldSelector=metadata.namespace%3Dn"},
	{"", "labelSelector="},
	{"selector bad", "labelSelector=a%3D%3D%3D"},
	{"selector bad", "fieldSelector=spec.none%3D1"},
	{"selector bad", "fieldSelector=a"},
	{"selector bad", "labelSelector=a%20in"},
}

func (r *request) addSelectors(t *rapid.T, to target) {
	v := pick(t, "selector", 50, selectors...)
	if to.plural == "gadgets" && strings.Contains(v.text, "namespace") {
		v.trait = "selector bad" // gadgets have no namespace
	}
	r.addQuery(v)
	if to.plural == "widgets" {
		r.addQuery(pick(t, "color selector", 85, variant{"", "fieldSelector=spec.color%3Dred"}))
	}
}

func genList(t *rapid.T, to target) request {
	r := request{verb: "list", method: "GET", path: to.collection()}
	if rapid.IntRange(1, 4).Draw(t, "all?") == 1 {
		r.path = collectionPath(to.plural, "")
	}
	r.addSelectors(t, to)
	key := collectionKey(r.path)
	r.addQuery(pick(t, "option", 50, append(same(
		"limit=1", "limit=2", "limit=0", "limit=-1", "limit=99999999999", "limit=x", "limit=%2B1",
		"timeoutSeconds=99999999999", "timeoutSeconds=x", "pretty=yes", "pretty=true",
		"continue=bad", "resourceVersion=abc", "resourceVersion=0", "resourceVersionMatch=Exact",
		"sendInitialEvents=true",
		"allowWatchBookmarks=true", "watch=false", "watch=0", "resourceVersion=0&resourceVersionMatch=Exact",
		"resourceVersion=0&resourceVersionMatch=NotOlderThan", "unknown=1",
	),
		variant{"continue", "limit=-1&continue=@continue(" + key + ")"},
		variant{"continue", "limit=1&continue=@continue(" + key + ")"},
		variant{"continue with match", "continue=@continue(" + key + ")&resourceVersionMatch=Exact"},
		variant{"continue with version", "continue=@continue(" + key + ")&resourceVersion=@list(" + key + ")"},
		variant{"match bad", "resourceVersion=@list(" + key + ")&resourceVersionMatch=Bad"},
		variant{"exact", "resourceVersion=@list(" + key + ")&resourceVersionMatch=Exact"},
		variant{"exact with limit", "resourceVersion=@list(" + key + ")&resourceVersionMatch=Exact&limit=1"},
		variant{"not older", "resourceVersion=@list(" + key + ")&resourceVersionMatch=NotOlderThan"},
		variant{"version", "resourceVersion=@list(" + key + ")"},
		variant{"version with limit", "resourceVersion=@list(" + key + ")&limit=1"},
	)...))
	r.addAccept(t)
	return r
}

// genStatus generates a request for the status subresource, which cogs do not have.
func genStatus(t *rapid.T, to target) request {
	if to.plural == "cogs" && rapid.IntRange(1, 4).Draw(t, "no status?") > 1 {
		to.plural = "widgets"
	}
	to.subresource = "status"
	return oneOf(t, "verb of status", genGet, genUpdate, genUpdate, genMergePatch, genMergePatch, genApply)(t, to)
}

func genScale(t *rapid.T, to target) request {
	if rapid.IntRange(1, 8).Draw(t, "widget?") > 1 {
		to = target{plural: "widgets", namespace: "n", name: oneOf(t, "name", "a", "b")}
	}
	to.subresource = "scale"
	// Do not generate applies, because this version of Kubernetes responds with 500 to each apply
	// that changes the scale of a custom resource.
	verb := oneOf(t, "verb of scale", "get", "update", "patch")
	r := request{verb: to.verb(verb), path: to.path()}
	switch verb {
	case "get":
		r.method = "GET"
		r.addQuery(pick(t, "option", 75, readOptions...))
		r.addAccept(t)
		return r
	case "update":
		r.method, r.contentType = "PUT", jsonType
	case "patch":
		r.method, r.contentType = "PATCH", mergePatchType
	}
	r.setScale(variant{"", oneOf(t, "scale", scaleBodies...)}, to)
	if v := pick(t, "bad scale", 75, badScaleBodies...); v.text != "" && r.admits(v.trait) {
		r.setScale(v, to)
	}
	r.addQuery(pick(t, "option", 85, writeOptions...))
	return r
}

// setScale sets the body of r to the scale in v, or to the merge patch of a scale in v.
func (r *request) setScale(v variant, to target) {
	r.body = to.fill(v.text)
	r.mark(v.trait)
	if r.method == "PATCH" {
		r.body = strings.Replace(r.body, `"apiVersion":"autoscaling/v1","kind":"Scale",`, "", 1)
	}
}

// genOddRequest generates a request with a method or media type that the path does not support.
func genOddRequest(t *rapid.T, to target) request {
	all := []request{
		{
			verb: "create", traits: []string{"method"}, method: "POST", path: to.path(), contentType: jsonType,
			body: "{}",
		},
		{
			verb: "update", traits: []string{"method"}, method: "PUT", path: to.collection(), contentType: jsonType,
			body: "{}",
		},
		{
			verb: "patch", traits: []string{"method"}, method: "PATCH", path: to.collection(),
			contentType: mergePatchType,
			body:        "{}",
		},
		{
			verb: "patch", traits: []string{"strategic"}, method: "PATCH", path: to.path(), contentType: strategicType,
			body: "{}",
		},
		{
			verb: "patch", traits: []string{"media type bad"}, method: "PATCH", path: to.path(), contentType: jsonType,
			body: "{}",
		},
		{verb: "patch", traits: []string{"media type bad"}, method: "PATCH", path: to.path(), body: "{}"},
		{
			verb: "create", traits: []string{"media type bad"}, method: "POST", path: to.collection(),
			contentType: "text/plain", body: newObject(to.plural, to.namespace, to.name).text(),
		},
		{
			verb: "create", traits: []string{"media type missing"}, method: "POST", path: to.collection(),
			body: newObject(to.plural, to.namespace, to.name).text(),
		},
		{
			verb: "create", traits: []string{"YAML"}, method: "POST", path: to.collection(),
			contentType: "application/yaml", body: to.yaml(),
		},
		{
			verb: "apply", traits: []string{"YAML"}, method: "PATCH", path: to.path(), query: managers[0],
			contentType: applyPatchType, body: to.yaml(),
		},
		{verb: "delete/status", method: "DELETE", path: to.path() + "/status"},
		{verb: "get of none", method: "GET", path: to.path() + "/none"},
		{verb: "create/status", method: "POST", path: to.path() + "/status", contentType: jsonType, body: "{}"},
		{verb: "get of none", method: "GET", path: "/apis/demo.example.com/v1/nones"},
		{verb: "get of none", method: "GET", path: "/apis/demo.example.com/v2/widgets"},
		{
			verb: "create", traits: []string{"no namespace"}, method: "POST", path: collectionPath(to.plural, ""),
			contentType: jsonType, body: newObject(to.plural, to.namespace, to.name).text(),
		},
		{
			verb: "deletecollection", traits: []string{"no namespace"}, method: "DELETE",
			path: collectionPath("widgets", ""),
		},
	}
	return oneOf(t, "odd request", all...)
}
