package controller

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/workqueue"
)

// Orphans deletes objects whose owners have been deleted, for stores without the garbage collector
// of a Kubernetes cluster. Declare an owner in metadata.ownerReferences; [listwatch.Metadata] has
// them.
//
// An object is deleted when all its references name owners that no longer exist. A reference to
// another kind than OwnerKind counts as an owner that exists. An object is never deleted because of
// old information: before each delete, Orphans lists the owners of this name.
type Orphans struct {
	// Owners is the collection of owners, and OwnerKind the kind of its objects in references.
	Owners    listwatch.Source
	OwnerKind string
	// Dependents is the collection whose orphans are deleted.
	Dependents listwatch.Store
	// Called has the same meaning as in [Options].
	Called func(Call)
}

// An owned is an object of any kind.
type owned struct {
	listwatch.Metadata `json:"metadata"`
}

// The indexes of the informers: by metadata.uid, and by the uid of each owner.
const byUID, byOwner = "uid", "owner"

func uidOf(o *informer.Item[owned]) []string { return []string{o.Value.UID} }

func ownersOf(o *informer.Item[owned]) []string {
	uids := make([]string, len(o.Value.OwnerReferences))
	for i, r := range o.Value.OwnerReferences {
		uids[i] = r.UID
	}
	return uids
}

// Run deletes orphans until ctx ends, and returns ctx.Err().
func (o Orphans) Run(ctx context.Context) error {
	owners := &informer.Informer[owned]{Source: o.Owners}
	dependents := &informer.Informer[owned]{Source: o.Dependents}
	if err := errors.Join(owners.AddIndex(byUID, uidOf), dependents.AddIndex(byOwner, ownersOf)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { _ = owners.Run(ctx) })     // returns when ctx ends
	all.Go(func() { _ = dependents.Run(ctx) }) // returns when ctx ends
	var q workqueue.Queue[listwatch.Key]
	enqueue := func(owner owned) {
		orphans, _ := dependents.ByIndex(byOwner, owner.UID) // the index exists
		for _, orphan := range orphans {
			q.Add(orphan.Key())
		}
	}
	owners.Handle(informer.Handler[owned]{
		// After an interruption, the informer may see a new object of the same name as an update.
		OnUpdate: func(old, now owned) {
			if old.UID != now.UID {
				enqueue(old)
			}
		},
		OnDelete: func(d informer.Deleted[owned]) { enqueue(d.Value) },
	}, nil)
	if err := owners.WaitForSync(ctx); err != nil {
		return err
	}
	collect := func(ctx context.Context, key listwatch.Key) error {
		d, ok := dependents.Get(key)
		if !ok || len(d.OwnerReferences) == 0 || d.DeletionTimestamp != nil {
			return nil
		}
		for _, r := range d.OwnerReferences {
			if found, err := o.exists(ctx, r, owners); found || err != nil {
				return err
			}
		}
		_, err := o.Dependents.Delete(ctx, key, listwatch.Preconditions{UID: d.UID, Version: d.Metadata.Version()})
		if errors.Is(err, listwatch.NotFound) {
			return nil
		}
		return err
	}
	return Reconcile(ctx, dependents, collect, Options[owned]{Queue: &q, Called: o.Called})
}

// exists reports whether the owner that r names exists. If the informer does not have it, which may
// lag, exists lists the owners of this name in all namespaces.
func (o Orphans) exists(
	ctx context.Context, r listwatch.OwnerReference, owners *informer.Informer[owned],
) (bool, error) {
	if r.Kind != o.OwnerKind {
		return true, nil
	}
	if found, err := owners.ByIndex(byUID, r.UID); err != nil || len(found) > 0 {
		return len(found) > 0, err
	}
	page, err := o.Owners.List(ctx, listwatch.Query{Selection: listwatch.Selection{Name: r.Name}})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(page.Items, func(object *listwatch.Object) bool {
		owner, err := listwatch.Decode[owned](object)
		return err != nil || owner.UID == r.UID
	}), nil
}
