package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"
	"github.com/listwatch/listwatch/watchserver"
)

// Flag is the type of the objects.
type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool `json:"enabled"`
}

// A Remote watches a collection over HTTP.
func ExampleRemote() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	flags := memory.New[Flag]()
	server := httptest.NewServer(&watchserver.Server{Source: flags})
	defer server.Close()

	remote := &client.Remote{URL: server.URL}
	defer remote.Close()
	w, err := remote.Watch(ctx, listwatch.Query{Bookmarks: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()

	for event, err := range listwatch.All(ctx, w) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Type, event.Version > 0, event.Object.Key.Name == "dark-mode")
		switch event.Type {
		case listwatch.Synced:
			if _, err := flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}}); err != nil {
				fmt.Println(err)
			}
		case listwatch.Added:
			return
		}
	}
	// Output:
	// BOOKMARK true false
	// ADDED true true
}

// HTTPClient controls how the client connects to the server. Here it dials a Unix socket.
func ExampleRemote_unixSocket() {
	ctx := context.Background()
	flags := memory.New[Flag]()
	if _, err := flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}}); err != nil {
		fmt.Println(err)
		return
	}
	directory, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(directory)
	path := filepath.Join(directory, "flags.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		fmt.Println(err)
		return
	}
	server := &http.Server{Handler: &watchserver.Server{Source: flags}}
	go server.Serve(listener)
	defer server.Close()

	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	remote := &client.Remote{
		URL:        "http://localhost/flags",
		HTTPClient: &http.Client{Transport: &http.Transport{DialContext: dial}},
	}
	defer remote.Close()
	w, err := remote.Watch(ctx, listwatch.Query{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	for event, err := range listwatch.All(ctx, w) {
		fmt.Println(event.Type, event.Object.Key, err)
		break
	}
	// Output:
	// ADDED dark-mode <nil>
}

// A typed.Collection reads and writes Go values. This server is a crudserver.Handler. For a
// Kubernetes API server only the URL differs, and a delete returns no object.
func ExampleRemote_write() {
	ctx := context.Background()
	server := httptest.NewServer(&crudserver.Handler{
		Path:       "/flags",
		Collection: store.CollectionOf(memory.New[Flag]()),
	})
	defer server.Close()

	remote := &client.Remote{URL: server.URL + "/flags"}
	defer remote.Close()
	flags := typed.Collection[Flag]{Store: remote}
	flag, err := flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}})
	fmt.Println(errors.Is(err, listwatch.AlreadyExists), err)

	flag, err = flags.Update(ctx, flag.Key(), func(f *Flag) error { f.Enabled = true; return nil })
	fmt.Println(flag.Enabled, flag.Generation, err)

	last, err := flags.Delete(ctx, flag.Key(), flag.Version())
	fmt.Println(last.Enabled, last.Version() > flag.Version(), err)
	_, err = flags.Get(ctx, flag.Key())
	fmt.Println(errors.Is(err, listwatch.NotFound), err)
	// Output:
	// true create: already exists: flags "dark-mode" already exists
	// true 2 <nil>
	// true true <nil>
	// true get: not found: flags "dark-mode" not found
}

// A list can be read page by page.
func ExampleRemote_List() {
	ctx := context.Background()
	flags := memory.New[Flag]()
	server := httptest.NewServer(&watchserver.Server{Source: flags})
	defer server.Close()
	for _, name := range []string{"beta", "dark-mode", "sidebar"} {
		if _, err := flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: name}}); err != nil {
			fmt.Println(err)
			return
		}
	}

	remote := &client.Remote{URL: server.URL}
	defer remote.Close()
	q := listwatch.Query{Limit: 2}
	for {
		page, err := remote.List(ctx, q)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, object := range page.Items {
			fmt.Println(object.Key)
		}
		fmt.Println("remaining:", page.Remaining)
		if q.Continue = page.Continue; q.Continue == "" {
			return
		}
	}
	// Output:
	// beta
	// dark-mode
	// remaining: 1
	// sidebar
	// remaining: 0
}
