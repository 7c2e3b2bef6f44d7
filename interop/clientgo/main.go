// Command clientgo is a client under test: client-go with the control hook of
// docs/conformance-hook.md. Its argument names the part of client-go that resumes watches,
// reflector or retrywatcher. Single streams are watches of the dynamic client.
//
//	listwatch conformance client --exec './clientgo reflector'
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

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
