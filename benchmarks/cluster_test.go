package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// A fleet writes the objects of one kind as a cluster in a steady state does.
type fleet struct {
	kind    string
	objects int
	// fields are the members that a controller or a console needs, apart from the identity.
	fields string
	// change changes a member of an object. If it returns false, the object is deleted, and created
	// again by a later write.
	change func(r *rand.Rand, o *fleetObject) bool
	// render returns the JSON of an object.
	render func(name string, v listwatch.Version, o *fleetObject) []byte

	random  *rand.Rand
	states  []fleetObject
	deleted []int // the numbers of the objects to create again
}

// A fleetObject holds the members of an object that change.
type fleetObject struct {
	generation, counter, notes int // counts of its creations, main changes and other changes
	ready                      bool
	tick                       int     // the time of the last change
	parts                      [20]int // the numbers of changes of each endpoint or section
}

// fleets returns pods of 6 KB, nodes of 7.5 KB, leases of 0.8 KB, endpoint slices of 7 KB and
// config maps of 4.5 KB, all with managedFields.
func fleets() []*fleet {
	return []*fleet{
		{
			kind: "pods", objects: 200, render: renderPod, change: changePod,
			fields: "metadata.labels,metadata.deletionTimestamp,spec.nodeName,status.phase," +
				"status.conditions.type,status.conditions.status",
		},
		{
			kind: "nodes", objects: 100, render: renderNode, change: changeNode,
			fields: "metadata.labels,spec.taints,spec.unschedulable,status.allocatable," +
				"status.conditions.type,status.conditions.status",
		},
		{kind: "leases", objects: 100, render: renderLease, change: changeLease, fields: "spec.holderIdentity"},
		{
			kind: "slices", objects: 100, render: renderSlice, change: changeSlice,
			fields: "endpoints.addresses,endpoints.conditions,ports",
		},
		{kind: "configmaps", objects: 100, render: renderConfigMap, change: changeConfigMap, fields: "data.section-3"},
	}
}

// fleetOf returns a fleet of the given kind and number of objects.
func fleetOf(kind string, objects int) *fleet {
	all := fleets()
	f := all[slices.IndexFunc(all, func(f *fleet) bool { return f.kind == kind })]
	f.objects = objects
	return f
}

// start appends all objects to w.
func (f *fleet) start(w *writer) {
	f.random = rand.New(rand.NewPCG(30, 1))
	f.states = make([]fleetObject, f.objects)
	for n := range f.states {
		f.states[n].ready = true
		w.append(f.record(n, w, true))
	}
}

// next returns the next write.
func (f *fleet) next(w *writer) history.Record {
	n := f.random.IntN(f.objects)
	o := &f.states[n]
	if w.log.Get(f.key(n)) == nil || !f.change(f.random, o) && len(f.deleted) > 0 {
		n, f.deleted = f.deleted[0], f.deleted[1:]
		f.states[n] = fleetObject{generation: f.states[n].generation + 1}
		return f.record(n, w, true)
	}
	if o.counter < 0 {
		o.counter = 0
		f.deleted = append(f.deleted, n)
		return f.record(n, w, false)
	}
	o.tick = int(w.version)
	return f.record(n, w, true)
}

func (f *fleet) key(n int) listwatch.Key {
	return listwatch.Key{
		Namespace: fmt.Sprint("shop-", n%5),
		Name:      fmt.Sprintf("%s-%d-7d9c8b6f5d-x%04d", f.kind, n%25, n),
	}
}

// record returns the write of the object with the given number, or its deletion.
func (f *fleet) record(n int, w *writer, exists bool) history.Record {
	key, v := f.key(n), w.version+1
	r := history.Record{Version: v, Old: w.log.Get(key)}
	if exists {
		r.New = &listwatch.Object{Key: key, Version: v, Data: f.render(key.Name, v, &f.states[n])}
	}
	return r
}

func (w *writer) append(r history.Record) {
	w.version = r.Version
	w.log.Append(r)
}
