package informer_test

import (
	"context"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/store/memory"
)

type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool `json:"enabled"`
}

// newFlags returns a memory store that contains two flags.
func newFlags(ctx context.Context) listwatch.Source {
	flags := memory.New[Flag]()
	for name, enabled := range map[string]bool{"beta-search": false, "dark-mode": true} {
		flag := Flag{Metadata: listwatch.Metadata{Name: name}, Enabled: enabled}
		if _, err := flags.Create(ctx, flag); err != nil {
			panic(err)
		}
	}
	return flags
}

func ExampleInformer() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	flags := &informer.Informer[Flag]{Source: newFlags(ctx)}
	added := 0
	flags.Handle(informer.Handler[Flag]{
		OnAdd: func(f Flag, initial bool) { added++ },
	}, nil)
	go flags.Run(ctx)
	if err := flags.WaitForSync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	all, err := flags.List(listwatch.Query{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(added, "flags added")
	for _, f := range all {
		fmt.Println(f.Name, f.Enabled)
	}
	// Output:
	// 2 flags added
	// beta-search false
	// dark-mode true
}

// names is a Sink that sends the names of the objects of each complete state.
type names chan string

func (n names) Replace(items []*informer.Item[Flag], _ listwatch.Version) error {
	for _, i := range items {
		n <- i.Value.Name
	}
	close(n)
	return nil
}

func (n names) Apply(...informer.Delta[Flag]) error { return nil }
func (n names) Bookmark(_ listwatch.Version) error  { return nil }

func ExampleReflector() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	received := make(names)
	r := informer.Reflector[Flag]{Source: newFlags(ctx), Sink: received}
	go r.Run(ctx)
	for name := range received {
		fmt.Println(name)
	}
	// Output:
	// beta-search
	// dark-mode
}

func ExampleDeltaFIFO() {
	var store informer.Indexer[string]
	fifo := informer.DeltaFIFO[string]{KnownObjects: &store}
	item := func(name string, version listwatch.Version, value string) *informer.Item[string] {
		return &informer.Item[string]{Key: listwatch.Key{Name: name}, Version: version, Value: value}
	}
	// The three changes of object a are coalesced into one. The changes of object b cancel each
	// other out.
	_ = fifo.Add(item("a", 1, "one"))
	_ = fifo.Add(item("b", 2, "two"))
	_ = fifo.Update(item("a", 3, "three"))
	_ = fifo.Update(item("a", 4, "four"))
	_ = fifo.Delete(item("b", 5, "two"))

	for fifo.Len() > 0 {
		err := fifo.Pop(context.Background(), func(deltas informer.Deltas[string], _ bool) error {
			for d := range deltas.All() {
				fmt.Println(d.Type, deltas.Key, d.Item.Value)
			}
			return store.Put(deltas.At(deltas.Len() - 1).Item)
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("version", fifo.Version())
	// Output:
	// Added a four
	// version 5
}

func ExampleIndexer() {
	var colors informer.Indexer[string]
	byLetter := func(i *informer.Item[string]) []string { return []string{i.Value[:1]} }
	if err := colors.AddIndex("letter", byLetter); err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"green", "blue", "gray"} {
		if err := colors.Put(&informer.Item[string]{Key: listwatch.Key{Name: name}, Value: name}); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(colors.ByIndex("letter", "g"))
	fmt.Println(colors.List(listwatch.Query{Selection: listwatch.Selection{Name: "blue"}}))
	_, err := colors.ByIndex("size", "small")
	fmt.Println(err)
	// Output:
	// [gray green] <nil>
	// [blue] <nil>
	// not found: no index "size"; existing indexes: letter
}

func ExampleShared() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	var factory informer.Factory
	source := newFlags(ctx)
	first, _ := informer.Shared[Flag](&factory, source, listwatch.Selection{}, nil)
	second, _ := informer.Shared[Flag](&factory, source, listwatch.Selection{}, nil)
	go factory.Run(ctx)
	if err := factory.WaitForSync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(first == second, first.Len())
	// Output: true 2
}
