package main

import (
	"encoding/json"
	"os"
	"sync"
)

// A request is a watch that the suite requests.
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
