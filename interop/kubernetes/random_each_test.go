//go:build !race

package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// each sends every fault, change and option once with each verb that allows it. Random sequences
// contain all of these combinations only by luck. each returns the number of sequences that it ran.
func (c *comparison) each(t *testing.T) (sequences int) {
	const length = 20
	to := targets[0]
	create := newCreate(to)
	for rest := eachRequest(to); len(rest) > 0; sequences++ {
		steps := append([]request{create}, rest[:min(length, len(rest))]...)
		done, err := c.run(t.Context(), steps)
		if err != nil {
			if _, alone := c.run(t.Context(), []request{create, steps[done-1]}); alone != nil {
				err = alone // a shorter sequence reproduces the error
			}
			t.Error(err)
			return sequences
		}
		if done < 2 {
			t.Error("the create at the start of a sequence was answered in two ways")
			return sequences
		}
		rest = rest[done-1:] // continue after the last step of the sequence that was run
	}
	return sequences
}

func newCreate(to target) request {
	return request{
		verb: "create", method: "POST", path: to.collection(), contentType: jsonType,
		body: newObject(to.plural, to.namespace, to.name).text(),
	}
}

// eachRequest returns the requests that [comparison.each] sends. Most of them are for an object
// that exists.
func eachRequest(to target) (all []request) {
	status := to
	status.subresource = "status"
	for _, r := range []request{
		{verb: "update", method: "PUT", path: to.path(), contentType: jsonType},
		{verb: "update/status", method: "PUT", path: status.path(), contentType: jsonType},
		{
			verb: "apply", method: "PATCH", path: to.path(), contentType: applyPatchType,
			query: managers[0] + "&force=true",
		},
		{
			verb: "apply/status", method: "PATCH", path: status.path(), contentType: applyPatchType,
			query: managers[1] + "&force=true",
		},
		{verb: "create", method: "POST", path: to.collection(), contentType: jsonType},
	} {
		all = append(all, r.withEachObject(to)...)
	}
	for _, to := range []target{to, status} {
		patch := request{verb: to.verb("patch"), method: "PATCH", path: to.path()}
		all = append(all, patch.withEachPatch(to)...)
	}
	return slices.Concat(all, eachScale(to), eachRead(to), eachDelete(to))
}

// withEachObject returns copies of r: with each object, valid or not, and with each option. Every
// copy of a create has a name of its own.
func (r request) withEachObject(to target) (all []request) {
	changes := slices.Concat([]change{{}}, usualChanges, faults)
	if strings.HasSuffix(r.verb, "/status") {
		changes = append(changes, statusChanges...)
	}
	next := func() (request, object) {
		if r.verb == "create" {
			to.name = fmt.Sprint("x", len(all))
		}
		o := newObject(to.plural, to.namespace, to.name)
		if r.method == "PUT" {
			o.set(change{"", "metadata.resourceVersion", `"@rv(KEY)"`}, to)
		}
		return r, o
	}
	for _, c := range changes {
		r, o := next()
		if c.path != "" {
			r.addFault(o, c, to)
		}
		r.body = strings.ReplaceAll(o.text(), "@{step}", fmt.Sprint(len(all)))
		all = append(all, r)
	}
	for _, v := range badBodies {
		r, _ := next()
		r.setBadBody(v, to)
		all = append(all, r)
	}
	for _, v := range writeOptions {
		r, o := next()
		r.addQuery(v)
		r.body = o.text()
		all = append(all, r)
	}
	for _, v := range accepts {
		r, o := next()
		r.accept, r.body = v.text, o.text()
		r.mark(v.trait)
		all = append(all, r)
	}
	return all
}

// withEachPatch returns copies of r, one with each patch.
func (r request) withEachPatch(to target) (all []request) {
	add := func(mediaType string, v variant) {
		r := r
		r.contentType = mediaType
		r.setPatch(v, to)
		all = append(all, r)
	}
	for _, v := range slices.Concat(usual(mergePatches...), badMergePatches) {
		add(mergePatchType, v)
	}
	if to.subresource == "status" {
		for _, text := range statusPatches {
			add(mergePatchType, variant{"", text})
		}
	}
	for _, operation := range jsonOperations {
		add(jsonPatchType, variant{"", "[" + operation + "]"})
	}
	for _, v := range badJSONPatches {
		add(jsonPatchType, v)
	}
	return all
}

// eachScale returns updates and patches of the scale.
func eachScale(to target) (all []request) {
	to.subresource = "scale"
	for _, v := range slices.Concat(usual(scaleBodies...), badScaleBodies) {
		for _, r := range []request{
			{verb: "update/scale", method: "PUT", path: to.path(), contentType: jsonType},
			{verb: "patch/scale", method: "PATCH", path: to.path(), contentType: mergePatchType},
		} {
			r.setScale(v, to)
			all = append(all, r, request{verb: "get/scale", method: "GET", path: to.path()})
		}
	}
	return all
}

// eachRead returns reads of the object, its status, its scale and its collection.
func eachRead(to target) (all []request) {
	for _, subresource := range []string{"", "status", "scale"} {
		to.subresource = subresource
		for _, v := range readOptions {
			r := request{verb: to.verb("get"), method: "GET", path: to.path()}
			r.addQuery(v)
			all = append(all, r)
		}
		for _, v := range accepts {
			all = append(all, request{
				verb: to.verb("get"), traits: []string{v.trait}, method: "GET", path: to.path(),
				accept: v.text,
			})
		}
	}
	for _, v := range selectors {
		r := request{verb: "list", method: "GET", path: to.collection()}
		r.addQuery(v)
		all = append(all, r)
	}
	return all
}

// eachDelete returns deletes of an object. A request that creates the object precedes each of them.
func eachDelete(to target) (all []request) {
	to.name = "d"
	create := newCreate(to)
	add := func(r request, trait string) {
		if r.verb == "delete" || trait != "propagation" {
			r.mark(trait)
			all = append(all, create, r)
		}
	}
	for _, r := range []request{
		{verb: "delete", method: "DELETE", path: to.path()},
		{verb: "deletecollection", method: "DELETE", path: to.collection()},
	} {
		for _, v := range deleteOptions {
			r.query, r.body, r.contentType = v.text, "", ""
			add(r, v.trait)
		}
		for _, v := range deleteBodies {
			r.query, r.body, r.contentType = "", to.fill(v.text), jsonType
			add(r, v.trait)
		}
	}
	return all
}
