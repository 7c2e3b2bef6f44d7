//go:build !race

package lives

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
)

const (
	mergePatch = "application/merge-patch+json"
	applyPatch = "application/apply-patch+yaml"
	held       = `"finalizers":["example.com/held"]`
)

// nameIn returns the name of an object in a life. The names of objects without a namespace contain
// the name of the life. The empty name stands for the namespace or the definition of the life.
func (k kind) nameIn(name string) string {
	switch {
	case !k.cluster:
		return name
	case k.kind == "CustomResourceDefinition":
		return cmp.Or(name, "things") + ".NAME.example.com"
	case name == "":
		return "NAME"
	}
	return "NAME-" + name
}

// create returns a step that creates an object. metadata has further members of the metadata.
func create(plural, name, metadata string) step {
	k := kindOf(plural)
	return step{
		verb: "create", method: http.MethodPost, path: k.path("NAME", ""),
		body: k.object(k.nameIn(name), metadata),
	}
}

// at returns the path of an object of a life, or of one of its subresources.
func at(plural, name string) string {
	name, subresource, _ := strings.Cut(name, "/")
	k := kindOf(plural)
	return strings.TrimSuffix(k.path("NAME", k.nameIn(name))+"/"+subresource, "/")
}

func get(plural, name string) step {
	return step{verb: "get", method: http.MethodGet, path: at(plural, name)}
}

// bind returns a step that assigns a pod to a node.
func bind(pod, node string) step {
	return step{
		verb: "create", method: http.MethodPost, path: at("pods", pod+"/binding"),
		body: `{"metadata":{"name":"` + pod + `","annotations":{"x":"y"},"labels":{"x":"y"}},` +
			`"target":{"kind":"Node","name":"` + node + `"}}`,
	}
}

func patch(plural, name, body string) step {
	return step{verb: "patch", method: http.MethodPatch, path: at(plural, name), contentType: mergePatch, body: body}
}

// remove returns a step that deletes an object. options has the members of the DeleteOptions.
func remove(plural, name, options string) step {
	if options != "" {
		options = "{" + options + "}"
	}
	return step{verb: "delete", method: http.MethodDelete, path: at(plural, name), body: options}
}

// removeAll returns a step that deletes the objects of a kind in the namespace.
func removeAll(plural, options string) step {
	if options != "" {
		options = "{" + options + "}"
	}
	return step{
		verb: "deletecollection", method: http.MethodDelete, path: kindOf(plural).path("NAME", ""),
		body: options,
	}
}

// apply returns a step that applies an object.
func apply(plural, name, manager, content string) step {
	k := kindOf(plural)
	return step{
		verb: "apply", method: http.MethodPatch, path: at(plural, name), contentType: applyPatch,
		query: "fieldManager=" + manager,
		body: fmt.Sprintf(`{"apiVersion":"%s","kind":"%s","metadata":{"name":"%s"},%s}`, k.apiVersion(), k.kind,
			k.nameIn(name), content),
	}
}

// ownedBy returns the member ownerReferences with references to objects. An owner has the form
// configmaps/a. With an exclamation mark at its end, the reference has blockOwnerDeletion.
func ownedBy(owners ...string) string {
	var all []string
	for _, o := range owners {
		o, blocks := strings.CutSuffix(o, "!")
		plural, name, _ := strings.Cut(o, "/")
		k := kindOf(plural)
		text := fmt.Sprintf(`{"apiVersion":"%s","kind":"%s","name":"%s","uid":"@uid(%s/%s)"`,
			k.apiVersion(), k.kind, k.nameIn(name), plural, k.nameIn(name))
		if blocks {
			text += `,"blockOwnerDeletion":true`
		}
		all = append(all, text+"}")
	}
	return `"ownerReferences":[` + strings.Join(all, ",") + "]"
}

const (
	background = `"propagationPolicy":"Background"`
	foreground = `"propagationPolicy":"Foreground"`
	orphan     = `"propagationPolicy":"Orphan"`
	release    = `{"metadata":{"finalizers":null}}`
)

// life returns the life of an object of each kind: it is created, changed in all ways that may
// change its generation, and deleted.
func (k kind) life() []step {
	all := []step{
		create(k.plural, "a", ""),
		patch(k.plural, "a", release), // volumes have a finalizer
		get(k.plural, "a"),
		patch(k.plural, "a", `{"metadata":{"annotations":{"a":"b"}}}`),
		patch(k.plural, "a", `{"metadata":{"labels":{"a":"b"}}}`),
		patch(k.plural, "a",
			`{"metadata":{"ownerReferences":[{"apiVersion":"example.com/v1","kind":"None","name":"a","uid":"`+noUID+
				`"}]}}`),
	}
	if k.change != "" {
		all = append(all, patch(k.plural, "a", k.change), patch(k.plural, "a", k.change))
	}
	if k.status != "" {
		all = append(all, patch(k.plural, "a/status", k.status), patch(k.plural, "a/status", k.status))
	}
	all = append(all,
		remove(k.plural, "a", `"dryRun":["All"]`),
		patch(k.plural, "a", `{"metadata":{"finalizers":["example.com/held"]}}`),
		remove(k.plural, "a", ""),
		remove(k.plural, "a", background),
		remove(k.plural, "a", orphan),
		remove(k.plural, "a", foreground),
		patch(k.plural, "a", `{"metadata":{"annotations":{"a":"c"}}}`),
		patch(k.plural, "a", release),
		create(k.plural, "b", ""),
		patch(k.plural, "b", release),
		remove(k.plural, "b", ""),
		create(k.plural, "c", ""),
		patch(k.plural, "c", release),
		remove(k.plural, "c", background),
	)
	if !k.cluster {
		all = append(all, create(k.plural, "d", ""), patch(k.plural, "d", release), removeAll(k.plural, ""))
	}
	return all
}

// written holds the lives that are not random: the cases that users have reported, and those that
// random lives meet only by luck.
var written = map[string][]step{
	"events-of-both-groups": {
		create("events", "older", ""),
		{verb: "get", method: http.MethodGet, path: newEvents.path("NAME", "older")},
		{
			verb: "create", method: http.MethodPost, path: newEvents.path("NAME", ""),
			body: newEvents.object("newer", ""),
		},
		get("events", "newer"),
		patch("events", "newer", `{"message":"once more","count":2}`),
		{verb: "get", method: http.MethodGet, path: newEvents.path("NAME", "newer")},
		{verb: "delete", method: http.MethodDelete, path: newEvents.path("NAME", "newer")},
		get("events", "newer"),
	},
	"jobs-keep-their-pods": {
		create("jobs", "j", ""),
		create("pods", "p", ownedBy("jobs/j")),
		create("replicationcontrollers", "r", ""),
		create("pods", "q", ownedBy("replicationcontrollers/r")),
		remove("jobs", "j", ""),
		remove("replicationcontrollers", "r", ""),
		create("jobs", "j", ""),
		create("pods", "o", ownedBy("jobs/j")),
		removeAll("jobs", ""),
		create("jobs", "j", ""),
		create("pods", "n", ownedBy("jobs/j")),
		removeAll("jobs", background),
		create("replicasets", "s", ""),
		create("pods", "m", ownedBy("replicasets/s")),
		remove("replicasets", "s", ""),
	},
	"waiting-owner-is-removed": {
		create("configmaps", "a", ""),
		create("configmaps", "b", ""),
		create("configmaps", "x", ownedBy("configmaps/a!", "configmaps/b!")),
		create("configmaps", "y", ownedBy("configmaps/x!")),
		remove("configmaps", "a", foreground),
	},
	"foreground-waits": {
		create("configmaps", "a", ""),
		create("configmaps", "x", ownedBy("configmaps/a!")+","+held),
		create("configmaps", "y", ownedBy("configmaps/a")+","+held),
		create("configmaps", "z", ownedBy("configmaps/a")),
		remove("configmaps", "a", foreground),
		create("configmaps", "late", ownedBy("configmaps/a")),
		create("configmaps", "later", ownedBy("configmaps/a!")),
		patch("configmaps", "x", release),
		patch("configmaps", "y", release),
	},
	"blocking-ends": {
		create("configmaps", "a", ""),
		create("configmaps", "x", ownedBy("configmaps/a!")+","+held),
		remove("configmaps", "a", foreground),
		patch("configmaps", "x", `{"metadata":{`+ownedBy("configmaps/a")+`}}`),
		patch("configmaps", "x", release),
	},
	"reference-is-removed": {
		create("configmaps", "a", ""),
		create("configmaps", "x", ownedBy("configmaps/a!")+","+held),
		remove("configmaps", "a", foreground),
		patch("configmaps", "x", `{"metadata":{"ownerReferences":null}}`),
		patch("configmaps", "x", release),
	},
	"circle": {
		create("configmaps", "a", ""),
		create("configmaps", "b", ownedBy("configmaps/a!")),
		patch("configmaps", "a", `{"metadata":{`+ownedBy("configmaps/b!")+`}}`),
		remove("configmaps", "a", foreground),
	},
	"deep-foreground": {
		create("gadgets", "a", ""),
		create("widgets", "b", ownedBy("gadgets/a!")),
		create("configmaps", "c", ownedBy("widgets/b!")),
		create("pods", "d", ownedBy("configmaps/c!")+","+held),
		remove("gadgets", "a", foreground),
		patch("pods", "d", release),
	},
	"deep-background": {
		create("gadgets", "a", ""),
		create("widgets", "b", ownedBy("gadgets/a!")),
		create("configmaps", "c", ownedBy("widgets/b!")+","+held),
		create("pods", "d", ownedBy("configmaps/c!")),
		remove("gadgets", "a", ""),
		patch("configmaps", "c", release),
	},
	"policies-change": {
		create("configmaps", "a", held),
		create("configmaps", "x", ownedBy("configmaps/a!")+","+held),
		remove("configmaps", "a", foreground),
		remove("configmaps", "a", ""),
		remove("configmaps", "a", orphan),
		remove("configmaps", "a", foreground),
		remove("configmaps", "a", background),
		patch("configmaps", "a", `{"metadata":{"finalizers":["example.com/other","example.com/held"]}}`),
		patch("configmaps", "a", release),
		patch("configmaps", "x", release),
	},
	"policy-without-dependents": {
		create("configmaps", "a", held),
		remove("configmaps", "a", foreground),
		remove("configmaps", "a", background),
		patch("configmaps", "a", release),
		create("configmaps", "b", held),
		remove("configmaps", "b", orphan),
		remove("configmaps", "b", foreground),
		remove("configmaps", "b", orphan),
		patch("configmaps", "b", release),
	},
	"finalizers-of-policies": {
		create("configmaps", "a", `"finalizers":["orphan"]`),
		create("configmaps", "x", ownedBy("configmaps/a!")),
		remove("configmaps", "a", ""),
		create("configmaps", "b", `"finalizers":["foregroundDeletion"]`),
		create("configmaps", "y", ownedBy("configmaps/b!")),
		remove("configmaps", "b", ""),
		create("configmaps", "c", `"finalizers":["orphan","foregroundDeletion"]`),
		create("configmaps", "d", `"finalizers":["none"]`),
		create("configmaps", "e", `"finalizers":["orphan"]`),
		create("configmaps", "z", ownedBy("configmaps/e!")),
		remove("configmaps", "e", background),
		create("jobs", "f", `"finalizers":["foregroundDeletion"]`),
		remove("jobs", "f", ""),
	},
	"options-of-deletes": {
		create("configmaps", "a", ""),
		remove("configmaps", "a", `"preconditions":{"uid":"`+noUID+`"}`),
		remove("configmaps", "a", `"preconditions":{"uid":"other"}`),
		remove("configmaps", "a", `"preconditions":{"resourceVersion":"1"}`),
		remove("configmaps", "a", `"propagationPolicy":"None"`),
		remove("configmaps", "a", `"propagationPolicy":"Orphan","orphanDependents":true`),
		remove("configmaps", "a", `"gracePeriodSeconds":-1`),
		remove("configmaps", "a", `"dryRun":["Some"]`),
		remove("configmaps", "a", `"dryRun":["All"]`),
		remove("configmaps", "a",
			`"gracePeriodSeconds":5,"preconditions":{"uid":"@uid(configmaps/a)","resourceVersion":"@rv(configmaps/a)"}`),
		remove("configmaps", "a", ""),
		create("configmaps", "b", held),
		remove("configmaps", "b", `"orphanDependents":false`),
		remove("configmaps", "b", `"orphanDependents":true`),
		remove("configmaps", "b", `"orphanDependents":false`),
		patch("configmaps", "b", release),
	},
	"odd-owners": {
		create("configmaps", "a", ""),
		create("configmaps", "name", strings.Replace(ownedBy("configmaps/a"), `"name":"a"`, `"name":"other"`, 1)),
		create("configmaps", "kind", strings.Replace(ownedBy("configmaps/a"), `ConfigMap`, `Secret`, 1)),
		create("configmaps", "unknown", strings.Replace(ownedBy("configmaps/a"), `ConfigMap`, `Unknown`, 1)),
		create("configmaps", "version", strings.Replace(ownedBy("replicasets/none"), `apps/v1`, `apps/v1beta9`, 1)),
		create("configmaps", "group", strings.Replace(ownedBy("replicasets/none"), `apps/v1`, `example.com/v1`, 1)),
		create("configmaps", "two", ownedBy("configmaps/a", "configmaps/none")),
		create("configmaps", "mixed",
			strings.Replace(ownedBy("configmaps/none", "replicasets/none"), `apps/v1`, `example.com/v1`, 1)),
		create("configmaps", "self", ""),
		patch("configmaps", "self", `{"metadata":{`+ownedBy("configmaps/self!")+`}}`),
		create("gadgets", "global", ownedBy("configmaps/a")),
		create("configmaps", "twice", ownedBy("configmaps/a", "configmaps/a!")),
		create("configmaps", "bad", `"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a"}]`),
		create("configmaps", "event",
			`"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"a","uid":"`+noUID+`"}]`),
		create("configmaps", "controllers",
			strings.ReplaceAll(ownedBy("configmaps/a", "configmaps/self"), `"name"`, `"controller":true,"name"`)),
		remove("configmaps", "self", foreground),
		remove("configmaps", "a", foreground),
	},
	"owner-in-another-namespace": {
		create("configmaps", "a", ""),
		create("namespaces", "other", ""),
		inOtherNamespace(create("configmaps", "x", ownedBy("configmaps/a"))),
		await(inOtherNamespace(get("configmaps", "x"))),
	},
	"owner-is-replaced": {
		create("configmaps", "a", ""),
		create("configmaps", "x", ownedBy("configmaps/a")+","+held),
		remove("configmaps", "a", orphan),
		create("configmaps", "a", ""),
		create("configmaps", "y", ownedBy("configmaps/a")),
		remove("configmaps", "a", ""),
		create("configmaps", "a", ""),
		create("configmaps", "z", ownedBy("configmaps/a")),
	},
	"deleted-dependent-keeps-its-owner": {
		create("configmaps", "a", ""),
		create("configmaps", "x", ownedBy("configmaps/a!")+","+held),
		remove("configmaps", "x", ""),
		remove("configmaps", "a", foreground),
		patch("configmaps", "x", release),
	},
	"dependents-of-dependents-are-orphaned": {
		create("configmaps", "a", ""),
		create("configmaps", "x", ownedBy("configmaps/a!")+`,"finalizers":["orphan"]`),
		create("configmaps", "y", ownedBy("configmaps/x!")),
		remove("configmaps", "a", ""),
	},
	"foreground-of-a-finalized-owner": {
		create("configmaps", "a", `"finalizers":["foregroundDeletion"]`),
		create("configmaps", "x", ownedBy("configmaps/a!")+`,"finalizers":["foregroundDeletion"]`),
		create("configmaps", "y", ownedBy("configmaps/x!")+","+held),
		remove("configmaps", "a", ""),
		patch("configmaps", "y", release),
	},
	"namespace-with-content": {
		create("configmaps", "a", ""),
		create("configmaps", "x", ownedBy("configmaps/a!")),
		create("widgets", "w", ""),
		create("pods", "p", ""),
		remove("namespaces", "", ""),
		create("configmaps", "late", ""),
		create("widgets", "late", ""),
		remove("namespaces", "", ""),
	},
	"namespace-with-finalizers": {
		create("configmaps", "a", held),
		create("widgets", "w", `"finalizers":["example.com/held","example.com/other"]`),
		create("secrets", "s", ""),
		remove("namespaces", "", ""),
		create("configmaps", "late", ""),
		remove("namespaces", "", foreground),
		patch("configmaps", "a", release),
		patch("widgets", "w", release),
	},
	"namespace-with-a-held-pod": {
		create("pods", "p", held),
		create("configmaps", "a", ""),
		remove("namespaces", "", ""),
		patch("pods", "p", release),
	},
	"pod-is-bound": {
		create("pods", "p", `"annotations":{"a":"b"}`), bind("p", "n"), get("pods", "p"), bind("p", "m"),
		get("pods", "p"),
		create("pods", "q", held), remove("pods", "q", ""), bind("q", "n"), bind("none", "n"),
	},
	"namespace-with-a-finalizer": {
		patch("namespaces", "", `{"metadata":{"finalizers":["example.com/held"]}}`),
		create("configmaps", "a", ""),
		remove("namespaces", "", ""),
		patch("namespaces", "", `{"metadata":{"annotations":{"a":"b"}}}`),
		patch("namespaces", "", release),
	},
	"namespace-is-finalized": {
		create("configmaps", "a", held),
		remove("namespaces", "", ""),
		{
			verb: "finalize", method: http.MethodPut, path: "/api/v1/namespaces/NAME/finalize",
			body: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"NAME"},"spec":{}}`,
		},
		patch("configmaps", "a", release),
	},
	"namespaces-of-the-system": {
		{verb: "delete", method: http.MethodDelete, path: "/api/v1/namespaces/default"},
		{verb: "delete", method: http.MethodDelete, path: "/api/v1/namespaces/kube-system"},
		{verb: "delete", method: http.MethodDelete, path: "/api/v1/namespaces/kube-public"},
		{
			verb: "delete", method: http.MethodDelete, path: "/api/v1/namespaces/NAME",
			body: `{"preconditions":{"uid":"other"}}`,
		},
		{verb: "delete", method: http.MethodDelete, path: "/api/v1/namespaces/NAME", body: `{"dryRun":["All"]}`},
		{
			verb: "create", method: http.MethodPost, path: "/api/v1/namespaces/none/configmaps",
			body: `{"metadata":{"name":"a"}}`,
		},
	},
	"applies": {
		apply("widgets", "w", "m", `"spec":{"ports":[{"port":80}]}`),
		apply("widgets", "w", "m", `"spec":{"ports":[{"port":80}]}`),
		apply("widgets", "w", "n", `"spec":{"ports":[{"port":80,"name":"a"}]}`),
		apply("widgets", "w", "m", `"spec":{"ports":[{"port":80,"protocol":"UDP"}]}`),
		apply("widgets", "w", "m", `"spec":{"ports":[{"port":81,"name":"b"},{"port":80,"name":"b"}]}`),
		apply("widgets", "w", "m", `"spec":{"ports":[{"port":81}],"color":"red"}`),
		apply("widgets", "w", "n", `"spec":{"color":"blue"}`),
		apply("widgets", "w", "n", `"spec":{"flags":[{"note":"a"}]}`),
		apply("widgets", "w", "n", `"spec":{"flags":[{"note":"a"},{"level":3,"on":false}]}`),
		patch("widgets", "w", `{"spec":{"ports":[{"port":80}]}}`),
		patch("widgets", "w", `{"spec":{"flags":[{"level":4},{"level":4,"on":true}]}}`),
		apply("widgets", "w", "m", `"spec":{}`),
		remove("widgets", "w", ""),
	},
	"embedded-objects": {
		patch("widgets", "none", `{}`),
		create("widgets", "w", ""),
		patch("widgets", "w", `{"spec":{"template":{"kind":"A"}}}`),
		patch("widgets", "w",
			`{"spec":{"template":{"apiVersion":"v1","kind":"A","metadata":{"name":"x","none":"y","labels":{"a":"b"}},"b":1}}}`),
		patch("widgets", "w", `{"spec":{"template":{"metadata":{"name":"no name"}}}}`),
	},
	"definition-with-held-objects": {
		define(thing("")),
		await(createThing("w", held)),
		createThing("x", ""),
		remove("customresourcedefinitions", "", ""),
		await(lateThing), // the API server of a cluster notices the deletion in a moment
		createThing("late", ""),
		patchThing("w", `{"metadata":{"annotations":{"a":"b"}}}`),
		patchThing("w", release),
		await(getThings),
		await(define(thing(""))),
		await(createThing("w", "")),
	},
	"definition-and-namespace-are-deleted": {
		define(thing("")),
		await(createThing("w", held)),
		remove("customresourcedefinitions", "", ""),
		patch("customresourcedefinitions", "", `{"metadata":{"finalizers":["example.com/held"]}}`),
		patch("customresourcedefinitions", "", `{"spec":{"names":{"shortNames":["th"]}}}`),
		remove("namespaces", "", ""),
		createThing("late", ""),
		patchThing("w", release),
		await(getThings),
	},
	"pod-is-deleted-without-its-policy": {
		create("pods", "p", `"finalizers":["orphan"]`),
		remove("pods", "p", background),
	},
	"definition-without-finalizers": {
		define(thing("")),
		await(createThing("w", "")),
		watchThings,
		remove("customresourcedefinitions", "", foreground),
		watchEnds,
		await(getThings),
	},
	"definition-changes-its-versions": {
		define(thing("")),
		await(createThing("w", "")),
		watchThings,
		patch("customresourcedefinitions", "", `{"spec":{"versions":`+versions("v2", "v1")+`}}`),
		watchEnds,
		await(thingInV2(getThings)),
		thingInV2(createThing("x", "")),
	},
	"definition-changes": {
		define(thing("")),
		await(createThing("w", "")),
		patch("customresourcedefinitions", "", `{"spec":{"scope":"Cluster"}}`),
		patch("customresourcedefinitions", "", `{"spec":{"group":"example.org"}}`),
		patch("customresourcedefinitions", "", `{"spec":{"names":{"kind":"Other"}}}`),
		patch("customresourcedefinitions", "", `{"spec":{"names":{"plural":"others"}}}`),
		patch("customresourcedefinitions", "", `{"spec":{"names":{"shortNames":["th"]}}}`),
		patch("customresourcedefinitions", "", `{"metadata":{"annotations":{"a":"b"}}}`),
		patch("customresourcedefinitions", "", `{"spec":{"versions":`+versions("v2", "v1")+`}}`),
		// The object must be stored in v2 before v1 is removed, or the cluster cannot read it.
		await(thingInV2(patchThing("w", `{"metadata":{"annotations":{"stored":"v2"}}}`))),
		patch("customresourcedefinitions", "", `{"spec":{"versions":`+versions("v2")+`}}`),
		patch("customresourcedefinitions", "/status", `{"status":{"storedVersions":["v2"]}}`),
		patch("customresourcedefinitions", "", `{"spec":{"versions":`+versions("v2")+`}}`),
	},
	"definitions-with-one-kind": {
		define(thing("")),
		await(createThing("w", "")),
		define(thing("other")),
		remove("customresourcedefinitions", "", ""),
		remove("customresourcedefinitions", "others", ""),
	},
}

// inOtherNamespace returns a request for the namespace NAME-other. The objects of that namespace
// are compared only in the answers to such requests.
func inOtherNamespace(s step) step {
	s.path = strings.Replace(s.path, "/NAME/", "/NAME-other/", 1)
	return s
}

// await returns a step that waits until both sides respond alike.
func await(s step) step {
	s.await = true
	return s
}
