package informer

import (
	"hash/maphash"
	"testing"

	"github.com/listwatch/listwatch"
)

func TestAValueThatIsModifiedInTheStoreIsFound(t *testing.T) {
	type thing struct{ Labels map[string]string }
	var store Indexer[*thing]
	put := func(name string, version listwatch.Version) *thing {
		value := &thing{Labels: map[string]string{"name": name}}
		if err := store.Put(&Item[*thing]{Key: listwatch.Key{Name: name}, Version: version, Value: value}); err != nil {
			t.Fatal(err)
		}
		return value
	}
	seen := &originals[*thing]{seed: maphash.MakeSeed()}
	a := put("a", 1)
	put("b", 2)
	for range 2 {
		if item := seen.check(store.Snapshot()); item != nil {
			t.Errorf("%s is said to be modified, and nothing was", item.Key)
		}
		put("b", 3) // stored anew
	}
	a.Labels["name"] = "other"
	if item := seen.check(store.Snapshot()); item == nil || item.Key.Name != "a" {
		t.Errorf("found %v, want a, which was modified", item)
	}
}
