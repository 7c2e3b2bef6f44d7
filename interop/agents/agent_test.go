//go:build !race

package agents

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An agent is a program on a node that watches the pods of its node, and the services, endpoint
// slices and nodes of the cluster, over one connection. It only counts what it receives.
type agent struct {
	url, token, node string
	client           *http.Client
	received         *received
}

// received counts the events and bytes of all agents.
type received struct{ events, bytes atomic.Int64 }

func newAgent(url string, n int, r *received) *agent {
	return &agent{
		url: url, token: tokenOf(n), node: nodeName(n % *nodes), received: r,
		client: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
		}},
	}
}

// run watches until ctx ends, and calls synced when the agent has received the state. It returns an
// error if a watch ends before ctx.
func (a *agent) run(ctx context.Context, synced func()) error {
	defer a.client.CloseIdleConnections()
	paths := []string{
		"/api/v1/pods?fieldSelector=" + url.QueryEscape("spec.nodeName="+a.node), "/api/v1/services?",
		"/apis/discovery.k8s.io/v1/endpointslices?", "/api/v1/nodes?",
	}
	var state, all sync.WaitGroup
	failed := make([]error, len(paths))
	state.Add(len(paths))
	for i, path := range paths {
		all.Go(func() {
			done := sync.OnceFunc(state.Done)
			defer done()
			if err := a.watch(ctx, path, done); ctx.Err() == nil {
				failed[i] = fmt.Errorf("%s %s: %w", a.node, path, err)
			}
		})
	}
	state.Wait()
	synced()
	all.Wait()
	return errors.Join(failed...)
}

// watchList are the parameters with which client-go requests a state and its changes.
const watchList = "&watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"

// accept is the header of client-go's typed clients. The client accepts gzip, too.
const accept = "application/vnd.kubernetes.protobuf,application/json"

// watch opens a watch and reads it until it ends. After a response with status 429, it tries again.
func (a *agent) watch(ctx context.Context, path string, synced func()) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path+watchList, nil)
	if err != nil {
		return err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + a.token}, "Accept": {accept}}
	for {
		response, err := a.client.Do(r)
		if err != nil {
			return err
		}
		if response.StatusCode == http.StatusOK {
			defer response.Body.Close()
			return a.read(response.Body, synced)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != http.StatusTooManyRequests {
			return fmt.Errorf("%s %s", response.Status, text)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// read counts the events of a watch in Protobuf. Each has its length before it.
func (a *agent) read(body io.Reader, synced func()) error {
	in := bufio.NewReaderSize(body, 64<<10)
	var event []byte
	for {
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return err
		}
		event = slices.Grow(event[:0], int(binary.BigEndian.Uint32(length[:])))[:binary.BigEndian.Uint32(length[:])]
		if _, err := io.ReadFull(in, event); err != nil {
			return err
		}
		a.received.bytes.Add(int64(len(length) + len(event)))
		switch {
		case bytes.Contains(event, []byte("k8s.io/initial-events-end")):
			synced()
		case bytes.HasPrefix(event, []byte("\x0a\x05ERROR")):
			return fmt.Errorf("%q", event)
		default:
			a.received.events.Add(1)
		}
	}
}
