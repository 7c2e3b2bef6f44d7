// Package typed reads and writes the objects of a collection as values of a Go type. The same
// verbs work for a store in this process, for the collection behind a URL, and for a cache:
//
//	flags := typed.Collection[Flag]{Store: &client.Remote{URL: "https://example.com/flags"}}
//	flag, err := flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}})
//	flag, err = flags.Update(ctx, flag.Key(), func(f *Flag) error {
//		f.Enabled = true
//		return nil
//	})
//
// memory.New returns a Collection over a new store in memory. For an indexed copy of the values in
// memory, use package informer.
package typed
