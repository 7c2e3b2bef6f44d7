package etcdcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store/etcd"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
)

// resource is what is served.
var resource = kubeapi.Resource{
	Group: "example.com", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true, Fields: []string{"spec.color"},
}

// serverEnv holds the configuration of the server that a process is.
const serverEnv = "LISTWATCH_TEST_SERVER"

type serverConfig struct {
	Addr      string
	Endpoints []string
}

// serverMain is for TestMain: a process that was started to be a server is one, and does not return.
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

// The times of a server are short, so that much happens in seconds.
const (
	requestTime = 2 * time.Second // for etcd to answer
	writeTime   = 2 * time.Second
	bookmark    = 100 * time.Millisecond
	heartbeat   = 500 * time.Millisecond
	watchTime   = 3 * time.Second
	idleTime    = 3 * time.Second // the silence after which clients give a stream up
)

// run serves until the process ends. What happens is told to the parent, a line each.
func (c serverConfig) run() error {
	tell := func(word string, rest ...any) { fmt.Println(append([]any{word}, rest...)...) }
	db, err := etcd.Open(context.Background(), etcd.Options{
		Endpoints: c.Endpoints, Timeout: requestTime, HistoryRevisions: 1 << 40, HistoryAge: -1, HistoryBytes: -1,
		Trace: &etcd.Trace{
			WatchLost:     func(_ string, err error) { tell("lost", err) },
			Relisted: func(_ string, why error) { tell("relisted", why) },
			Resumed:  func(_ string, from int64) { tell("resumed", from) },
			Repeated: func(_ string, v int64) { tell("repeated", v) },
		},
	})
	if err != nil {
		return err
	}
	things, err := db.Collection(resource.CollectionSpec())
	if err != nil {
		return err
	}
	api := &kubeapi.Handler{Ready: func() error { return db.Ready(context.Background()) }}
	api.Server.Timing.Bookmark, api.Server.Timing.Heartbeat, api.Server.Timing.Timeout = bookmark, heartbeat, watchTime
	api.Server.Limits.WriteTimeout = writeTime
	if err := api.Add(resource, things); err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: api}
	h2.Configure(s, transport.Options{WriteTimeout: writeTime, PingInterval: heartbeat})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the test does, however it ends
		os.Exit(0)
	}()
	tell("ready")
	return s.Serve(l)
}
