package persist_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/persist"
	"github.com/listwatch/listwatch/store/memory"
)

// An informer that starts again with the same file requests only what has changed since.
func Example() {
	type Flag struct {
		listwatch.Metadata `json:"metadata"`
	}
	directory, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(directory)
	file := persist.File{Path: filepath.Join(directory, "flags")}
	i := &informer.Informer[Flag]{Source: memory.New[Flag](), Persist: file}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error)
	go func() { ended <- i.Run(ctx) }()
	fmt.Println(i.WaitForSync(ctx))
	cancel()
	<-ended
	_, err = os.Stat(file.Path)
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
}
