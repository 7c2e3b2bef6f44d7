// Command clientgo is a client under test: client-go with the control hook of
// docs/conformance-hook.md. Its argument names the part of client-go that resumes watches: reflector
// or retrywatcher. Single streams are watches of the dynamic client.
//
//	listwatch conformance client --exec 'go run . reflector'
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// A request is what the suite asks for.
type request struct {
	ID                       int
	URL, ResourceVersion, CA string
	Headers                  map[string]string
	Resume                   bool
}

// A reply is a line for the suite.
type reply map[string]any

var mu sync.Mutex

func send(r reply) {
	line, err := json.Marshal(r)
	if err != nil {
		panic(err) // a reply contains decoded JSON
	}
	mu.Lock()
	defer mu.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n')) // the suite has exited if this fails
}

func main() {
	klog.SetLogger(logr.Discard())
	resume, can := reflect, []string{"h1", "resume", "initial", "tls"}
	if len(os.Args) > 1 && os.Args[1] == "retrywatcher" {
		resume, can = retryWatch, []string{"h1", "resume", "tls"}
	}
	send(reply{"can": can})
	open := map[int]context.CancelFunc{}
	for lines := bufio.NewReader(os.Stdin); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var r struct {
			Watch *request
			Close *struct{ ID int }
		}
		if err := json.Unmarshal(line, &r); err != nil {
			panic(err)
		}
		switch {
		case r.Watch != nil:
			ctx, cancel := context.WithCancel(context.Background())
			open[r.Watch.ID] = cancel
			run := single
			if r.Watch.Resume {
				run = resume
			}
			go run(ctx, *r.Watch) // ends when the suite closes the watch
		case r.Close != nil && open[r.Close.ID] != nil:
			open[r.Close.ID]()
		}
	}
}
