package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store/etcd"
	"github.com/listwatch/listwatch/transport/h2"
)

// servedResource is the resource that both servers serve.
var servedResource = kubeapi.Resource{
	Group: "example.com", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true,
	Fields: []string{"spec.color"},
}

// serverEnv is the environment variable with the configuration of a server. It makes a
// process of the test binary act as that server.
const serverEnv = "LISTWATCH_TEST_SERVER"

type serverConfig struct {
	Addr      string
	Endpoints []string
}

// serverMain must be called by TestMain. If the process was started as a server, it runs
// the server and does not return.
func serverMain() {
	text := os.Getenv(serverEnv)
	if text == "" {
		return
	}
	var c serverConfig
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// The timeouts are short, so that a run of a few seconds reaches all of them. requestTimeout limits
// the requests of a server to etcd, and idleTimeout is the idle timeout of the clients.
const (
	requestTimeout    = 2 * time.Second
	writeTimeout      = 2 * time.Second
	bookmarkInterval  = 100 * time.Millisecond
	heartbeatInterval = 500 * time.Millisecond
	watchTimeout      = 3 * time.Second
	idleTimeout       = 3 * time.Second
)

// run serves until the process exits. It prints a line when it is ready, and a line for each call
// of a function of its etcd.Trace.
func (c serverConfig) run() error {
	note := func(word string, rest ...any) { fmt.Println(append([]any{word}, rest...)...) }
	db, err := etcd.Open(context.Background(), etcd.Options{
		Endpoints: c.Endpoints, Timeout: requestTimeout, HistoryRevisions: 1 << 40,
		History: listwatch.Retention{Age: -1, Bytes: -1},
		Trace: &etcd.Trace{
			WatchLost:         func(_ string, err error) { note("lost", err) },
			Relisted:          func(_ string, why error) { note("relisted", why) },
			WatchResumed:      func(_ string, from int64) { note("resumed", from) },
			DuplicatesDropped: func(_ string, v int64) { note("repeated", v) },
		},
	})
	if err != nil {
		return err
	}
	things, err := db.Collection(servedResource.CollectionSpec())
	if err != nil {
		return err
	}
	api := &kubeapi.Handler{Ready: func() error { return db.Ready(context.Background()) }}
	api.Server.Timing.Bookmark, api.Server.Timing.Heartbeat, api.Server.Timing.Timeout = bookmarkInterval,
		heartbeatInterval, watchTimeout
	api.Server.Limits.WriteTimeout = writeTimeout
	if err := api.Add(servedResource, things); err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: api}
	h2.Configure(s, h2.Config{WriteTimeout: writeTimeout, PingInterval: heartbeatInterval})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // returns when the process of the test exits
		os.Exit(0)
	}()
	note("ready")
	return s.Serve(l)
}
