//go:build !race

package kubernetes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// An object is the body of a request.
type object map[string]any

// newObject returns a valid object.
func newObject(plural, namespace, name string) object {
	m := object{"name": name}
	if plural != "gadgets" {
		m["namespace"] = namespace
	}
	return object{
		"apiVersion": "demo.example.com/v1", "kind": kinds[plural], "metadata": m,
		"spec": object{"color": "red", "replicas": 1},
	}
}

func (o object) text() string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // objects consist of strings, numbers, lists and objects
	}
	return string(text)
}

func (t target) yaml() string {
	return fmt.Sprintf(
		"apiVersion: demo.example.com/v1\nkind: %s\nmetadata: {name: %s} # a comment\nspec:\n  color: red\n  replicas: 2\n", kinds[t.plural], t.name)
}

// fill replaces KEY, NAME and KIND in a text by the key, name and kind of the target.
func (t target) fill(text string) string {
	return strings.NewReplacer("KEY", t.key(), "NAME", t.name, "KIND", kinds[t.plural]).Replace(text)
}

// A change changes one part of an object. In path, dots separate the names of nested members. text
// is the JSON of the new value, or empty to delete the part.
type change struct{ trait, path, text string }

// usualChanges make valid objects. faults make objects that are unusual, or that at least one
// server could refuse.
var (
	usualChanges = []change{
		{"", "metadata.labels", `{"app":"x"}`},
		{"", "metadata.labels", `{"app":"y","tier":"z"}`},
		{"", "metadata.annotations", `{"note":"1"}`},
		{"", "metadata.finalizers", `["demo.example.com/hold"]`},
		{"", "spec.color", `"blue"`},
		{"", "spec.color", `"green"`},
		{"", "spec.replicas", `3`},
		{"", "spec.replicas", `0`},
		{"", "spec.name", `"abc"`},
		{"", "spec.tags", `["x"]`},
		{"", "spec.tags", `["x","y"]`},
		{"", "spec.parts", `[{"id":"a","weight":1}]`},
		{"", "spec.parts", `[{"id":"b"},{"id":"a","weight":2.5}]`},
		{"", "spec.raw", `{"any":{"a":[1,{"b":null}]},"n":9007199254740993}`},
		{"", "spec.frame", `{"width":1}`},
		{"", "spec.frame", `{"height":3,"width":2}`},
		{"", "spec.frame", `{"width":2,"height":3}`},
		{"", "spec.raw", `{"n":9007199254740993,"any":{"a":[1,{"b":null}]}}`},
		{"", "spec.replicas", ``},
		{"", "metadata.ownerReferences", `[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1"}]`},
		{"", "spec.name", `null`},
		{"", "spec.parts", `[]`},
		{"", "spec.raw", `{}`},
		{"", "spec.raw", `{"text":"\u0026 \u00e9 <"}`},
		{"", "spec.raw", `{"text":"& é \u003c"}`},
	}
	faults = []change{
		{"generateName", "metadata.generateName", `"gen@{step}-"`},
		{"generateName bad", "metadata.generateName", `"a/b"`},
		{"generateName bad", "metadata.generateName", `"A-"`},
		{"name missing", "metadata.name", ``},
		{"name wrong", "metadata.name", `"other"`},
		{"name bad", "metadata.name", `"Bad_Name"`},
		{"name null", "metadata.name", `null`},
		{"wrong type", "metadata.name", `7`},
		{"namespace missing", "metadata.namespace", ``},
		{"namespace wrong", "metadata.namespace", `"other"`},
		{"metadata missing", "metadata", ``},
		{"metadata null", "metadata", `null`},
		{"wrong type", "metadata", `"x"`},
		{"labels null", "metadata.labels", `null`},
		{"label null", "metadata.labels", `{"app":null}`},
		{"label key bad", "metadata.labels", `{"bad key!":"v"}`},
		{"label value bad", "metadata.labels", `{"app":"bad value!"}`},
		{"wrong type", "metadata.labels", `{"app":7}`},
		{"wrong type", "metadata.labels", `["app"]`},
		{"annotation key bad", "metadata.annotations", `{"bad key!":"v"}`},
		{"annotations empty", "metadata.annotations", `{}`},
		{"annotation null", "metadata.annotations", `{"note":null}`},
		{"finalizer bad", "metadata.finalizers", `["bad finalizer"]`},
		{"finalizer short", "metadata.finalizers", `["short"]`},
		{"finalizers short", "metadata.finalizers", `["short","demo.example.com/hold","example.com"]`},
		{"finalizers empty", "metadata.finalizers", `[]`},
		{"owners empty", "metadata.ownerReferences", `[]`},
		{"selfLink", "metadata.selfLink", `"/other"`},
		{"orphan finalizers", "metadata.finalizers", `["orphan","foregroundDeletion"]`},
		{"orphan finalizer", "metadata.finalizers", `["orphan"]`},
		{"", "metadata.finalizers", `["demo.example.com/hold"]`},
		{"repeated element", "metadata.finalizers", `["demo.example.com/a","demo.example.com/a"]`},
		{"event owner", "metadata.ownerReferences", `[{"apiVersion":"v1","kind":"Event","name":"e","uid":"u"}]`},
		{
			"repeated element", "metadata.ownerReferences",
			`[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1"},{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1"}]`,
		},
		{
			"two controllers", "metadata.ownerReferences",
			`[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1","controller":true},{"apiVersion":"v1","kind":"Pod","name":"q","uid":"u2","controller":true}]`,
		},
		{"owner incomplete", "metadata.ownerReferences", `[{"apiVersion":"","kind":"Pod","name":"","uid":"u1"}]`},
		{"unknown field", "metadata.ownerReferences", `[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1","x":1}]`},
		{"uid wrong", "metadata.uid", `"other"`},
		{"uid", "metadata.uid", `"@uid(KEY)"`},
		{"version", "metadata.resourceVersion", `"@rv(KEY)"`},
		{"version old", "metadata.resourceVersion", `"@old(KEY)"`},
		{"version 0", "metadata.resourceVersion", `"0"`},
		{"version bad", "metadata.resourceVersion", `"abc"`},
		{"version missing", "metadata.resourceVersion", ``},
		{"wrong type", "metadata.resourceVersion", `1`},
		{"creationTimestamp", "metadata.creationTimestamp", `"2020-01-01T00:00:00Z"`},
		{"", "metadata.annotations", `{"note":"3"}`},
		{"creationTimestamp null", "metadata.creationTimestamp", `null`},
		{"wrong type", "metadata.creationTimestamp", `"today"`},
		{"deletionTimestamp", "metadata.deletionTimestamp", `"2020-01-01T00:00:00Z"`},
		{"deletionGracePeriodSeconds", "metadata.deletionGracePeriodSeconds", `5`},
		{"generation", "metadata.generation", `7`},
		{"generation negative", "metadata.generation", `-1`},
		{"managedFields empty", "metadata.managedFields", `[]`},
		{"managedFields bad", "metadata.managedFields", `[{"manager":"x"}]`},
		{
			"managedFields", "metadata.managedFields",
			`[{"manager":"eve","operation":"Update","apiVersion":"demo.example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:color":{}}}}]`,
		},
		{"unknown field", "metadata.foo", `1`},
		{"apiVersion missing", "apiVersion", ``},
		{"apiVersion wrong", "apiVersion", `"demo.example.com/v2"`},
		{"wrong type", "apiVersion", `7`},
		{"kind missing", "kind", ``},
		{"kind wrong", "kind", `"Other"`},
		{"color missing", "spec.color", ``},
		{"color wrong", "spec.color", `"pink"`},
		{"color null", "spec.color", `null`},
		{"wrong type", "spec.color", `1`},
		{"wrong type", "spec.replicas", `"1"`},
		{"replicas large", "spec.replicas", `11`},
		{"replicas fraction", "spec.replicas", `1.5`},
		{"numbers", "spec.replicas", `1.0`},
		{"name pattern", "spec.name", `"ABCDEF"`},
		{"repeated element", "spec.tags", `["a","a"]`},
		{"tags many", "spec.tags", `["a","b","c","d"]`},
		{"repeated element", "spec.parts", `[{"id":"a"},{"id":"a"}]`},
		{"wrong type", "spec.parts", `[{"weight":1}]`},
		{"wrong type", "spec.parts", `{}`},
		{"unknown field", "spec.colour", `"red"`},
		{"unknown field", "spec.parts", `[{"id":"a","x":1}]`},
		{"unknown field", "extra", `{"a":1}`},
		{"spec null", "spec", `null`},
		{"spec missing", "spec", ``},
		{"wrong type", "spec", `[]`},
		{"spec empty", "spec", `{}`},
		{"number 1e400", "spec.raw", `{"n":1e400}`},
		{"numbers", "spec.raw", `{"n":[1.0,1e2,-0,0.1,18446744073709551616]}`},
		{"raw null", "spec.raw", `{"a":null}`},
		{"wrong type", "spec.raw", `[]`},
	}
	// storedIfEmpty lists the traits of changes that leave a member of the metadata empty or null.
	// After an apply, Kubernetes stores such a member. The next write drops the member, and
	// therefore makes a new version even if that write changes nothing else.
	storedIfEmpty = []string{
		"labels null", "label null", "annotations empty", "annotation null", "finalizers empty",
		"owners empty",
	}
	// badBodies are bodies that are not valid objects.
	badBodies = []variant{
		{"body empty", " "},
		{"body null", "null"},
		{"body list", "[]"},
		{"body broken", `{"metadata":`},
		{"body text", `"x"`},
		{"body trailing", `{} {}`},
		{
			"duplicate field",
			`{"apiVersion":"demo.example.com/v1","kind":"KIND","metadata":{"name":"NAME","resourceVersion":"@rv(KEY)"},"spec":{"color":"red","color":"blue"}}`,
		},
		{
			"duplicate name",
			`{"apiVersion":"demo.example.com/v1","kind":"KIND","metadata":{"name":"x","name":"NAME","resourceVersion":"@rv(KEY)"},"spec":{"color":"red"}}`,
		},
		{"body {}", `{}`},
	}
	// statusChanges change the status, in requests for the subresource status.
	statusChanges = []change{
		{"", "status", `{"phase":"Ready"}`},
		{"", "status", `{"replicas":2,"selector":"app=x"}`},
		{"", "status", ``},
		{"", "status", `{}`},
		{"status null", "status", `null`},
		{"wrong type", "status", `"x"`},
		{"unknown field", "status", `{"fase":"x"}`},
		{"wrong type", "status", `{"replicas":"x"}`},
	}
	// ignoredStatus are changes of the status in requests for the whole object.
	ignoredStatus = []change{
		{"", "status", `{"phase":"Ready"}`}, {"", "status", `{"replicas":2,"selector":"app=x"}`}, {"", "status", `{}`},
	}
	statusPatches = []string{
		`{"status":{"phase":"Ready"}}`, `{"status":{"phase":null,"replicas":1}}`, `{"status":null}`,
		`{"status":{"phase":7}}`, `{"status":{"fase":"x"}}`, `{"spec":{"color":"blue"},"status":{"phase":"Both"}}`,
		`{"metadata":{"labels":{"app":"s"},"finalizers":["demo.example.com/s"]},"status":{"phase":"Meta"}}`,
		`{"metadata":{"resourceVersion":"@rv(KEY)"},"status":{"phase":"Versioned"}}`, `{}`,
	}
	mergePatches = []string{
		`{"metadata":{"labels":{"app":"x"}}}`, `{"metadata":{"labels":{"app":null}}}`,
		`{"metadata":{"labels":{"app":"y"},"annotations":{"note":"2"}}}`, `{"spec":{"color":"blue"}}`,
		`{"spec":{"color":"red","name":null}}`, `{"spec":{"replicas":4}}`, `{"spec":{"tags":["x","z"]}}`,
		`{"spec":{"parts":[{"id":"b","weight":3}]}}`, `{"spec":{"raw":{"any":{"a":null},"b":[null]}}}`,
		`{"metadata":{"finalizers":["demo.example.com/hold"]}}`, `{"metadata":{"finalizers":null}}`,
		`{"metadata":{"finalizers":[]}}`, `{}`, `{"spec":{"frame":{"width":5}}}`, `{"metadata":{"annotations":null}}`,
		`{"spec":{"frame":null,"parts":null,"tags":null}}`, `{"metadata":{"labels":null}}`,
		`{"metadata":{"resourceVersion":"@rv(KEY)"},"spec":{"color":"green"}}`,
		`{"metadata":{"uid":"@uid(KEY)"},"spec":{"color":"green"}}`,
	}
	badMergePatches = []variant{
		{"color wrong", `{"spec":{"color":"pink"}}`},
		{"color null", `{"spec":{"color":null}}`},
		{"wrong type", `{"spec":{"replicas":"1"}}`},
		{"spec null", `{"spec":null}`},
		{"wrong type", `{"spec":[]}`},
		{"unknown field", `{"spec":{"colour":"red"}}`},
		{"unknown field", `{"extra":1}`},
		{"uid wrong", `{"metadata":{"uid":"other"}}`},
		{"uid null", `{"metadata":{"uid":null}}`},
		{"version old", `{"metadata":{"resourceVersion":"@old(KEY)"},"spec":{"color":"green"}}`},
		{"version bad", `{"metadata":{"resourceVersion":"abc"}}`},
		{"version 0", `{"metadata":{"resourceVersion":"0"},"spec":{"color":"green"}}`},
		{"version null", `{"metadata":{"resourceVersion":null},"spec":{"color":"green"}}`},
		{"version empty", `{"metadata":{"resourceVersion":""},"spec":{"color":"green"}}`},
		{"name wrong", `{"metadata":{"name":"other"}}`},
		{"name null", `{"metadata":{"name":null}}`},
		{"namespace wrong", `{"metadata":{"namespace":"other"}}`},
		{"namespace null", `{"metadata":{"namespace":null}}`},
		{"kind wrong", `{"kind":"Other"}`},
		{"kind null", `{"kind":null}`},
		{"apiVersion wrong", `{"apiVersion":"demo.example.com/v2"}`},
		{"apiVersion of core", `{"apiVersion":"v9"}`},
		{"apiVersion malformed", `{"apiVersion":"a/b/c"}`},
		{"apiVersion null", `{"apiVersion":null}`},
		{"metadata null", `{"metadata":null}`},
		{"creationTimestamp", `{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z"}}`},
		{"creationTimestamp null", `{"metadata":{"creationTimestamp":null}}`},
		{"wrong type", `{"metadata":{"creationTimestamp":"today"}}`},
		{"deletionTimestamp", `{"metadata":{"deletionTimestamp":"2030-01-01T00:00:00Z"}}`},
		{"deletionTimestamp null", `{"metadata":{"deletionTimestamp":null}}`},
		{"deletionGracePeriodSeconds", `{"metadata":{"deletionGracePeriodSeconds":5}}`},
		{"generation", `{"metadata":{"generation":7}}`},
		{"generation null", `{"metadata":{"generation":null}}`},
		{"generateName", `{"metadata":{"generateName":"gen-"}}`},
		{"finalizer bad", `{"metadata":{"finalizers":["bad finalizer"]}}`},
		{"finalizer short", `{"metadata":{"finalizers":["short"]}}`},
		{"selfLink", `{"metadata":{"selfLink":"/other"}}`},
		{"label value bad", `{"metadata":{"labels":{"app":"bad value!"}}}`},
		{"wrong type", `{"metadata":{"labels":{"app":7}}}`},
		{"wrong type", `{"metadata":{"labels":["x"]}}`},
		{"managedFields empty", `{"metadata":{"managedFields":[]}}`},
		{"managedFields null", `{"metadata":{"managedFields":null}}`},
		{"managedFields {}", `{"metadata":{"managedFields":[{}]}}`},
		{"unknown field", `{"metadata":{"foo":1}}`},
		{"patch list", `[]`},
		{"patch null", `null`},
		{"patch text", `"x"`},
		{"patch broken", `{"a":`},
		{"patch empty", ` `},
		{"duplicate field", `{"spec":{"color":"red","color":"blue"}}`},
		{"number 1e400", `{"spec":{"raw":{"n":1e400}}}`},
		{"repeated element", `{"spec":{"tags":["a","a"]}}`},
		{"repeated element", `{"spec":{"parts":[{"id":"a"},{"id":"a"}]}}`},
	}
	jsonOperations = []string{
		`{"op":"add","path":"/metadata/labels","value":{"app":"x"}}`,
		`{"op":"add","path":"/metadata/labels/app","value":"y"}`, `{"op":"remove","path":"/metadata/labels/app"}`,
		`{"op":"replace","path":"/spec/color","value":"blue"}`,
		`{"op":"add","path":"/spec/tags/-","value":"n"}`, `{"op":"add","path":"/spec/tags","value":["o"]}`,
		`{"op":"remove","path":"/spec/tags/0"}`, `{"op":"test","path":"/spec/color","value":"red"}`,
		`{"op":"test","path":"/spec/color","value":"none"}`, `{"op":"copy","from":"/spec/color","path":"/spec/name"}`,
		`{"op":"move","from":"/spec/name","path":"/spec/raw"}`, `{"op":"add","path":"/spec/replicas","value":5}`,
		`{"op":"replace","path":"/spec/replicas","value":6}`, `{"op":"remove","path":"/spec/none"}`,
		`{"op":"add","path":"/spec/none/deep","value":1}`,
		`{"op":"add","path":"/metadata/annotations","value":{"b/c":"1"}}`,
		`{"op":"remove","path":"/metadata/annotations/b~1c"}`, `{"op":"add","path":"/spec/raw","value":{"a":[1,2,3]}}`,
		`{"op":"add","path":"/spec/raw/a/1","value":null}`, `{"op":"add","path":"/spec/raw/a/9","value":0}`,
		`{"op":"add","path":"/metadata/finalizers","value":[]}`,
		`{"op":"test","path":"/metadata/resourceVersion","value":"@rv(KEY)"}`,
		`{"op":"test","path":"/metadata/uid","value":"@uid(KEY)"}`,
		`{"op":"test","path":"/spec/none","value":null}`, `{"op":"replace","path":"/spec/name","value":"rep"}`,
		`{"op":"replace","path":"/metadata/labels/app","value":"r"}`,
		`{"op":"replace","path":"/spec/tags/7","value":"t"}`, `{"op":"replace","path":"/spec/tags/-","value":"u"}`,
	}
	badJSONPatches = []variant{
		{"operation unknown", `[{"op":"frob","path":"/a"}]`},
		{"operation missing", `[{"path":"/a"}]`},
		{"path missing", `[{"op":"remove"}]`},
		{"path bad", `[{"op":"remove","path":"spec"}]`},
		{"path empty", `[{"op":"replace","path":"","value":{}}]`},
		{"path empty", `[{"op":"replace","path":"","value":null}]`},
		{
			"path empty",
			`[{"op":"replace","path":"","value":{"apiVersion":"demo.example.com/v1","kind":"KIND","metadata":{"name":"NAME","resourceVersion":"@rv(KEY)"},"spec":{"color":"green"}}}]`,
		},
		{"path empty", `[{"op":"test","path":"","value":{"kind":"KIND"}}]`},
		{"path empty", `[{"op":"remove","path":""}]`},
		{"path empty", `[{"op":"add","path":"","value":{}}]`},
		{"path empty", `[{"op":"move","path":"","from":"/spec"}]`},
		{"path empty", `[{"op":"copy","path":"/spec/raw","from":""}]`},
		{"value missing", `[{"op":"add","path":"/spec/raw"}]`},
		{"from missing", `[{"op":"copy","path":"/spec/raw"}]`},
		{"value null", `[{"op":"add","path":"/spec/color","value":null}]`},
		{"patch object", `{"op":"remove","path":"/a"}`},
		{"patch []", `[]`},
		{"patch null", `null`},
		{"patch broken", `[{`},
		{"operation text", `["x"]`},
		{"operation null", `[null]`},
		{"color wrong", `[{"op":"replace","path":"/spec/color","value":"pink"}]`},
		{"metadata removed", `[{"op":"remove","path":"/metadata"}]`},
		{"spec removed", `[{"op":"remove","path":"/spec"}]`},
		{"kind removed", `[{"op":"remove","path":"/kind"}]`},
		{"name changed", `[{"op":"replace","path":"/metadata/name","value":"x"}]`},
		{"uid changed", `[{"op":"replace","path":"/metadata/uid","value":"x"}]`},
		{"duplicate field", `[{"op":"add","path":"/spec/color","value":"red","value":"blue"}]`},
		{"negative index", `[{"op":"remove","path":"/spec/tags/-1"}]`},
		{"unknown member", `[{"op":"add","path":"/spec/color","value":"red","x":1}]`},
		{"unknown field", `[{"op":"add","path":"/spec/colour","value":"red"}]`},
	}
	deleteOptions = append(same(
		"dryRun=All", "dryRun=", "dryRun=None", "gracePeriodSeconds=0", "gracePeriodSeconds=30",
		"gracePeriodSeconds=-1", "gracePeriodSeconds=x",
		"propagationPolicy=Background", "propagationPolicy=Bad", "propagationPolicy=", "orphanDependents=false",
		"orphanDependents=true&propagationPolicy=Orphan", "pretty=true", "unknown=1",
		"ignoreStoreReadErrorWithClusterBreakingPotential=true", "uid=other", "fieldManager=x",
	), variant{"propagation", "propagationPolicy=Orphan"}, variant{"propagation", "propagationPolicy=Foreground"},
		variant{"propagation", "orphanDependents=true"})
	deleteBodies = []variant{
		{"", `{}`},
		{"", `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`},
		{"", `{"preconditions":{"uid":"@uid(KEY)"}}`},
		{"", `{"preconditions":{"resourceVersion":"@rv(KEY)"}}`},
		{"body dryRun", `{"dryRun":["All"]}`},
		{"body dryRun", `{"dryRun":[""]}`},
		{"body dryRun", `{"dryRun":["None"]}`},
		{"body dryRun null", `{"dryRun":null}`},
		{"precondition wrong", `{"preconditions":{"uid":"other"}}`},
		{"precondition wrong", `{"preconditions":{"resourceVersion":"@old(KEY)"}}`},
		{"precondition empty", `{"preconditions":{"uid":""}}`},
		{"precondition empty", `{"preconditions":{"resourceVersion":""}}`},
		{"preconditions empty", `{"preconditions":{}}`},
		{"body gracePeriod", `{"gracePeriodSeconds":10}`},
		{"body gracePeriod bad", `{"gracePeriodSeconds":"x"}`},
		{"propagation", `{"propagationPolicy":"Foreground"}`},
		{"propagation", `{"propagationPolicy":"Orphan"}`},
		{"body propagationPolicy bad", `{"propagationPolicy":"Bad"}`},
		{"body propagationPolicy bad", `{"propagationPolicy":""}`},
		{"body both policies", `{"orphanDependents":true,"propagationPolicy":"Orphan"}`},
		{"propagation", `{"orphanDependents":false}`},
		{"body kind wrong", `{"kind":"Other","apiVersion":"v1"}`},
		{"body broken", `{`},
		{"body list", `[]`},
		{"body null", `null`},
		{"body unknown field", `{"foo":1}`},
		{"body group", `{"kind":"DeleteOptions","apiVersion":"demo.example.com/v1"}`},
	}
	scaleBodies = []string{
		`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME"},"spec":{"replicas":3}}`,
		`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME"},"spec":{"replicas":1}}`,
		`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME","resourceVersion":"@rv(KEY)"},"spec":{"replicas":2}}`,
		`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME","uid":"@uid(KEY)"},"spec":{"replicas":4}}`,
	}
	badScaleBodies = []variant{
		{
			"replicas large",
			`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME"},"spec":{"replicas":11}}`,
		},
		{
			"replicas negative",
			`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME"},"spec":{"replicas":-1}}`,
		},
		{
			"wrong type",
			`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME"},"spec":{"replicas":"1"}}`,
		},
		{"replicas missing", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME"},"spec":{}}`},
		{"spec missing", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME"}}`},
		{
			"name wrong",
			`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"other"},"spec":{"replicas":2}}`,
		},
		{
			"version old",
			`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME","resourceVersion":"@old(KEY)"},"spec":{"replicas":2}}`,
		},
		{
			"uid wrong",
			`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME","uid":"other"},"spec":{"replicas":2}}`,
		},
		{
			"kind wrong",
			`{"apiVersion":"demo.example.com/v1","kind":"Widget","metadata":{"name":"NAME"},"spec":{"color":"red","replicas":2}}`,
		},
		{
			"unknown field",
			`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME"},"spec":{"replicas":2,"x":1}}`,
		},
		{
			"status",
			`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME"},"spec":{"replicas":2},"status":{"replicas":9}}`,
		},
		{"body broken", `{`},
		{
			"labels",
			`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"NAME","labels":{"a":"b"}},"spec":{"replicas":2}}`,
		},
	}
)

// addObject draws an object for the body. An update usually has the newest version.
func (r *request) addObject(t *rapid.T, to target, update bool) {
	o := newObject(to.plural, to.namespace, to.name)
	if update {
		o.set(change{"", "metadata.resourceVersion", `"@rv(KEY)"`}, to)
	}
	for _, c := range rapid.SliceOfN(rapid.SampledFrom(usualChanges), 0, 3).Draw(t, "changes") {
		o.set(c, to)
	}
	if rapid.IntRange(1, 100).Draw(t, "fault?") <= 35 {
		c := oneOf(t, "fault", faults...)
		r.addFault(o, c, to)
		if c.trait == "generateName" && !update && rapid.Bool().Draw(t, "name?") {
			o.set(change{"", "metadata.name", ""}, to)
		}
	}
	switch {
	case to.subresource == "status":
		if c := oneOf(t, "status", statusChanges...); r.admits(c.trait) {
			o.set(c, to)
			r.mark(c.trait)
		}
	case to.plural != "cogs" && rapid.IntRange(1, 5).Draw(t, "status?") == 1:
		// The status has no effect, because widgets and gadgets have the subresource.
		o.set(oneOf(t, "status", ignoredStatus...), to)
	}
	r.body = o.text()
	if v := pick(t, "bad body", 97, badBodies...); v.text != "" && len(r.traits) == 0 {
		r.setBadBody(v, to)
	}
}

// setBadBody sets the body of r to the text of v, an element of badBodies.
func (r *request) setBadBody(v variant, to target) {
	r.body = to.fill(v.text)
	r.mark(v.trait)
	if r.verb == "create" {
		r.body = strings.Replace(r.body, `,"resourceVersion":"@rv(`+to.key()+`)"`, "", 1)
	}
}

// addFault applies the fault c to o, which becomes the body of r, and adds the trait of c to r.
func (r *request) addFault(o object, c change, to target) {
	switch {
	case r.method == "PATCH" && c.trait == "number 1e400":
		return // Kubernetes reads 1e400 in YAML as a string, see docs/kubernetes.md
	case r.method == "PATCH" && slices.Contains(storedIfEmpty, c.trait):
		return
	case r.verb == "create" && c.trait == "version old":
		c.trait = "version" // every version of a new object is wrong
	}
	o.set(c, to)
	r.mark(c.trait)
}

// set changes a part of o.
func (o object) set(c change, to target) {
	head, rest, nested := strings.Cut(c.path, ".")
	switch {
	case nested:
		if part, ok := o[head].(object); ok {
			part.set(change{c.trait, rest, c.text}, to)
		}
	case c.text == "":
		delete(o, head)
	default:
		o[head] = json.RawMessage(to.fill(c.text))
	}
}
