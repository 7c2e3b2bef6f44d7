// Command hookserver is an example of a server that implements the control hook of
// docs/conformance-hook.md:
//
//	listwatch conformance server --exec 'go run ./conformance/testdata/hookserver'
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

// A request is a line on standard input, a reply is a line on standard output.
type request struct {
	ID     int             `json:"id"`
	Do     string          `json:"do"`
	At     string          `json:"at"`
	Key    listwatch.Key   `json:"key"`
	Object json.RawMessage `json:"object"`
	// Bookmarks is the interval of bookmarks in milliseconds, or zero.
	Bookmarks time.Duration `json:"bookmarks"`
	// TTL is the time in milliseconds after which objects end, or zero.
	TTL time.Duration `json:"ttl"`
}

type reply struct {
	ID      int    `json:"id"`
	At      string `json:"at,omitempty"`
	URL     string `json:"url,omitempty"`
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
	Code    string `json:"code,omitempty"`
	Stats   any    `json:"stats,omitempty"`
}

// A collection is a store with its own server. The request "open" creates one.
type collection struct {
	db     *memory.DB
	things *store.Collection
	api    *watchserver.Server
	http   *http.Server
	url    string
}

func open(bookmarks, ttl time.Duration) (*collection, error) {
	c := &collection{db: memory.Open(memory.Options{})}
	var err error
	c.things, err = c.db.Collection(store.CollectionSpec{
		APIVersion: "example.com/v1", Kind: "Thing", Plural: "things", Namespaced: true, Fields: []string{"spec.phase"},
		TTL: func([]byte) time.Duration { return ttl },
	})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c.api = &watchserver.Server{Source: c.things, Timing: watchserver.Timing{Bookmark: bookmarks}}
	c.http = &http.Server{Handler: c.api}
	c.url = "http://" + l.Addr().String() + "/things"
	h2.Configure(c.http, h2.Config{})
	go func() { _ = c.http.Serve(l) }() // returns when the server is closed
	return c, nil
}

func main() {
	first, err := open(0, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(map[string]any{
		"url": first.url, "kind": "Thing",
		"can": []string{
			"open", "put", "dense", "compact", "drain", "spaces", "fields", "lives", "stats", "bookmarks",
			"expires",
		},
	})
	opened := map[string]*collection{"": first}
	for in := json.NewDecoder(os.Stdin); ; {
		var r request
		if in.Decode(&r) != nil {
			return // the suite has closed standard input
		}
		a, err := do(opened, r)
		if a.ID = r.ID; err != nil {
			a.Error = err.Error()
			if errors.Is(err, listwatch.NotFound) {
				a.Code = "NotFound" // the suite also deletes objects that do not exist
			}
		}
		_ = out.Encode(a)
	}
}

func do(opened map[string]*collection, r request) (a reply, err error) {
	ctx, c := context.Background(), opened[r.At]
	if c == nil {
		return a, fmt.Errorf("collection %q does not exist", r.At)
	}
	var o *listwatch.Object
	switch r.Do {
	case "open":
		if c, err = open(r.Bookmarks*time.Millisecond, r.TTL*time.Millisecond); err == nil {
			a.At, a.URL = strconv.Itoa(r.ID), c.url
			opened[a.At] = c
		}
	case "close":
		delete(opened, r.At)
		err = c.http.Close()
	case "put":
		if o, err = c.things.Create(ctx, r.Object); errors.Is(err, listwatch.AlreadyExists) {
			o, err = c.things.Replace(ctx, r.Key, r.Object)
		}
	case "delete":
		o, err = c.things.Delete(ctx, r.Key, listwatch.Preconditions{})
	case "compact":
		c.db.Compact()
	case "drain":
		err = c.api.Drain(ctx)
	case "stats":
		a.Stats = map[string]int{"watches": len(c.api.Watches())}
	default:
		err = fmt.Errorf("unknown request %q", r.Do)
	}
	if o != nil {
		a.Version = o.Version.String()
	}
	return a, err
}
