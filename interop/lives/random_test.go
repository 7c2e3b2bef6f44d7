//go:build !race

package lives

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// A generator generates the steps of a random life. There are few names, so that most requests
// meet an object.
type generator struct {
	*rand.Rand
	steps []step
	// deleted is true after the namespace was deleted.
	deleted bool
}

// generate returns the steps of the random life with the given seed.
func generate(seed uint64) []step {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
	for range 3 + g.IntN(3) {
		g.create()
	}
	for range 4 + g.IntN(8) {
		g.step()
	}
	return g.steps
}

// generateDefinitions returns the steps of the random life of a definition with the given seed.
func generateDefinitions(seed uint64) []step {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	g.add(define(thing("")))
	for range 6 + g.IntN(6) {
		g.definitionStep()
	}
	// A controller of the cluster waits for a minute if objects remain.
	g.add(patchThing("a", release))
	g.add(patchThing("b", release))
	g.add(await(getThings))
	return g.steps
}

// definitionStep adds a step to the life of a definition.
func (g *generator) definitionStep() {
	const crds = "customresourcedefinitions"
	name, other := oneOf(g, "a", "b"), oneOf(g, "", "", "others")
	switch g.IntN(16) {
	case 0, 1, 2, 3:
		g.add(await(createThing(name, oneOf(g, "", held, `"labels":{"l":"a"}`))))
	case 4, 5:
		g.add(patchThing(name, release))
	case 6:
		g.add(patchThing(name, oneOf(g, `{"spec":{"a":"STEP"}}`, `{"metadata":{"labels":{"l":"a"}}}`)))
	case 7, 8:
		g.add(step{
			verb: "delete", method: http.MethodDelete, path: thingsPath + "/" + name,
			// The garbage collector of a cluster notices a new definition late, so Foreground and
			// Orphan are left out.
			body: oneOf(g, "", "{"+background+"}"),
		})
	case 9:
		g.add(define(thing(oneOf(g, "", "others"))))
	case 10, 11:
		// A controller of the cluster deletes the things later.
		g.add(remove(crds, other, oneOf(g, "", foreground, orphan)), await(getThings))
	case 12:
		g.add(patch(crds, other,
			oneOf(g, `{"spec":{"names":{"shortNames":["th"]}}}`, `{"spec":{"names":{"categories":["all"]}}}`,
				`{"spec":{"names":{"kind":"Other"}}}`, `{"spec":{"scope":"Cluster"}}`,
				`{"spec":{"names":{"singular":"one"}}}`)))
	case 13:
		g.add(patch(crds, other,
			oneOf(g, `{"metadata":{"labels":{"l":"a"}}}`, `{"metadata":{"finalizers":["example.com/held"]}}`, release)))
	case 14, 15:
		g.add(await(getThings))
	}
}

// oneOf returns one of the values.
func oneOf[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

// chance returns true with a probability of 1/n.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

func (g *generator) add(steps ...step) { g.steps = append(g.steps, steps...) }

// object returns the plural name of a kind, and the name of one of its objects.
func (g *generator) object() (plural, name string) {
	plural = oneOf(g, "configmaps", "configmaps", "configmaps", "widgets", "pods", "jobs", "replicasets", "gadgets",
		"secrets", "replicationcontrollers")
	return plural, oneOf(g, "a", "b")
}

// owners returns up to three references.
func (g *generator) owners() string {
	var all []string
	for range 1 + g.IntN(3) {
		plural, name := g.object()
		if g.chance(12) {
			name = "none"
		}
		all = append(all, plural+"/"+name+oneOf(g, "", "!"))
	}
	slices.Sort(all)
	unique := slices.CompactFunc(all, func(a, b string) bool { return strings.Trim(a, "!") == strings.Trim(b, "!") })
	return ownedBy(unique...)
}

func (g *generator) finalizers() string {
	return oneOf(g, held, held, `"finalizers":["example.com/held","example.com/other"]`, `"finalizers":["orphan"]`,
		`"finalizers":["foregroundDeletion"]`, `"finalizers":["foregroundDeletion","example.com/held"]`,
		`"finalizers":[]`)
}

// metadata returns members of the metadata of an object.
func (g *generator) metadata() string {
	var all []string
	if !g.chance(3) {
		all = append(all, g.owners())
	}
	if g.chance(3) {
		all = append(all, g.finalizers())
	}
	if g.chance(4) {
		all = append(all, `"labels":{"l":"`+oneOf(g, "a", "b")+`"}`)
	}
	return strings.Join(all, ",")
}

func (g *generator) create() {
	plural, name := g.object()
	g.add(create(plural, name, g.metadata()))
}

// options returns the members of DeleteOptions.
func (g *generator) options(plural, name string) string {
	all := []string{oneOf(g, "", "", background, background, foreground, foreground, foreground, orphan, orphan,
		`"orphanDependents":true`, `"orphanDependents":false`)}
	key := plural + "/" + kindOf(plural).nameIn(name)
	switch g.IntN(12) {
	case 0:
		all = append(all, `"preconditions":{"uid":"@uid(`+key+`)"}`)
	case 1:
		// No policy: in a cluster, a delete that removes the finalizer of another policy changes
		// the version, and then fails because of its own change.
		all = []string{`"preconditions":{"resourceVersion":"@rv(` + key + `)"}`}
	case 2:
		all = append(all, `"preconditions":{"uid":"`+noUID+`"}`)
	case 3:
		all = append(all, `"gracePeriodSeconds":0`)
	case 4:
		all = append(all, `"dryRun":["All"]`)
	}
	return strings.Trim(strings.Join(all, ","), ",")
}

// step adds a step.
func (g *generator) step() {
	plural, name := g.object()
	k := kindOf(plural)
	switch g.IntN(23) {
	case 0, 1, 2:
		g.create()
	case 3, 4, 5, 6, 7:
		g.add(remove(plural, name, g.options(plural, name)))
	case 8:
		if !k.cluster {
			s := removeAll(plural, oneOf(g, "", background, foreground, orphan))
			s.query = oneOf(g, "", "labelSelector=l%3Da", "fieldSelector=metadata.name%3Da")
			g.add(s)
		}
	case 9, 10, 11:
		g.add(patch(plural, name, release))
	case 12:
		g.add(patch(plural, name, `{"metadata":{`+g.finalizers()+`}}`))
	case 13, 14:
		g.add(patch(plural, name, `{"metadata":{`+oneOf(g, g.owners(), g.owners(), `"ownerReferences":null`)+`}}`))
	case 15:
		g.add(patch(plural, name,
			oneOf(g, k.change, `{"metadata":{"annotations":{"step":"STEP"}}}`, `{"metadata":{"labels":{"l":"a"}}}`)))
	case 16:
		if k.status != "" {
			g.add(patch(plural, name+"/status", k.status))
		}
	case 17, 18:
		g.apply()
	case 20:
		plural := oneOf(g, "configmaps", "secrets", "widgets", "gadgets")
		g.update(kindOf(plural), name)
	case 21:
		plural, name := oneOf(g, "replicasets", "widgets"), oneOf(g, "a", "b")
		g.add(patch(plural, name+"/scale", `{"spec":{"replicas":`+oneOf(g, "1", "2")+`}}`))
	case 22:
		g.evict(oneOf(g, "a", "b"))
	case 19:
		if !g.deleted && g.chance(3) {
			g.deleted = true
			g.add(remove("namespaces", "", oneOf(g, "", "", background, foreground)))
		}
	}
}

// update adds an update that replaces an object: with its version or UID, with neither, or with an
// old version.
func (g *generator) update(k kind, name string) {
	metadata := []string{g.metadata(), oneOf(g, "", `"resourceVersion":"@rv(`+k.plural+"/"+k.nameIn(name)+`)"`,
		`"uid":"@uid(`+k.plural+"/"+k.nameIn(name)+`)"`, `"resourceVersion":"1"`)}
	g.add(step{
		verb: "update", method: http.MethodPut, path: at(k.plural, name),
		body: k.object(k.nameIn(name), strings.Trim(strings.Join(metadata, ","), ",")),
	})
}

// evict adds an eviction of a pod.
func (g *generator) evict(name string) {
	options := oneOf(g, "", "", background, orphan, `"dryRun":["All"]`)
	g.add(step{
		verb: "evict", method: http.MethodPost, path: at("pods", name+"/eviction"),
		body: fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s"},"deleteOptions":{%s}}`,
			name, options),
	})
}

// apply adds an apply to a custom resource, a config map or a replica set.
func (g *generator) apply() {
	plural, content := "widgets", ""
	switch g.IntN(6) {
	case 0:
		plural, content = "configmaps", fmt.Sprintf(`"data":{"%s":"%s"}`, oneOf(g, "a", "b"), oneOf(g, "x", "y"))
	default:
		var ports []string
		for range g.IntN(3) {
			ports = append(ports,
				"{"+oneOf(g, `"port":80`, `"port":81`)+oneOf(g, "", "", `,"protocol":"TCP"`, `,"protocol":"UDP"`)+
					oneOf(g, "", `,"name":"x"`, `,"name":"y"`)+"}")
		}
		members := []string{`"ports":[` + strings.Join(ports, ",") + "]"}
		if g.chance(2) {
			members = append(members, `"color":"`+oneOf(g, "red", "blue", "black")+`"`)
		}
		if g.chance(3) {
			members = append(members,
				oneOf(g, `"flags":[{"note":"a"}]`, `"flags":[{"level":3,"on":true}]`,
					`"flags":[{"level":4},{"on":false}]`))
		}
		content = `"spec":{` + strings.Join(members, ",") + "}"
	}
	s := apply(plural, oneOf(g, "a", "b"), oneOf(g, "m", "n"), content)
	s.query += oneOf(g, "", "", "&force=true")
	g.add(s)
}
