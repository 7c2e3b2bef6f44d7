// An adapter for listwatch conformance: it starts your server and writes objects to it.
//
//	listwatch conformance server --exec 'go run adapter.go' --known-failures known_failures.txt
//
// Change command, collection, kind, put and del for your server. docs/conformance-hook.md describes
// the lines that the adapter and the suite exchange, and what else an adapter can offer.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// command starts a server with an empty collection, and kind is the kind of its objects.
var (
	command    = cmp.Or(os.Getenv("SERVER_COMMAND"), "./server --port {port}")
	collection = cmp.Or(os.Getenv("SERVER_URL"), "http://127.0.0.1:{port}/things")
	kind       = cmp.Or(os.Getenv("SERVER_KIND"), "Thing")
)

// A request is a line that the suite sends, and a reply is a line that the adapter sends.
type request struct {
	ID  int
	Do  string
	At  string
	Key struct{ Namespace, Name string }
	// Object is the JSON of the object of a put.
	Object json.RawMessage
}

type reply struct {
	ID      int    `json:"id"`
	At      string `json:"at,omitempty"`
	URL     string `json:"url,omitempty"`
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
	Code    string `json:"code,omitempty"`
}

// put creates an object, or replaces it if it exists.
func put(url string, r request) reply {
	done, status := send(http.MethodPut, url+"/"+r.Key.Namespace+"/"+r.Key.Name, r.Object)
	if status == http.StatusNotFound {
		done, _ = send(http.MethodPost, url, r.Object)
	}
	return done
}

// del deletes an object.
func del(url string, r request) reply {
	done, status := send(http.MethodDelete, url+"/"+r.Key.Namespace+"/"+r.Key.Name, nil)
	if status == http.StatusNotFound {
		done.Code = "NotFound"
	}
	return done
}

// compact discards all history. Level 1 requires it. If your server can do it, implement compact
// and add "compact" to can below.
func compact(url string) reply {
	done, _ := send(http.MethodPost, strings.Replace(url, "/things", "/compact", 1), []byte("{}"))
	return done
}

func send(method, url string, body []byte) (done reply, status int) {
	q, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return reply{Error: err.Error()}, 0
	}
	q.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		return reply{Error: err.Error()}, 0
	}
	defer response.Body.Close()
	var written struct {
		Metadata struct{ ResourceVersion string }
		Message  string
	}
	err = json.NewDecoder(response.Body).Decode(&written)
	if err != nil || response.StatusCode/100 != 2 {
		return reply{Error: fmt.Sprint(response.Status, " ", written.Message, " ", err)}, response.StatusCode
	}
	return reply{Version: written.Metadata.ResourceVersion}, response.StatusCode
}

type server struct {
	url     string
	process *exec.Cmd
}

// start starts a server on a free port.
func start() (*server, error) {
	addr := freeAddress()
	_, port, _ := net.SplitHostPort(addr)
	s := &server{strings.ReplaceAll(collection, "{port}", port), nil}
	s.process = exec.Command("sh", "-c", "exec "+strings.ReplaceAll(command, "{port}", port))
	s.process.Stdout, s.process.Stderr = os.Stderr, os.Stderr
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return s, nil
		}
	}
	s.stop()
	return nil, fmt.Errorf("the server does not listen on %s: %s", addr, command)
}

// freeAddress returns a free port below the usual range of ephemeral ports, so that no outgoing
// connection takes the port before the server listens.
func freeAddress() string {
	for {
		addr := fmt.Sprint("127.0.0.1:", 10000+rand.IntN(10000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
}

func (s *server) stop() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

func main() {
	first, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	servers := map[string]*server{"": first}
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(map[string]any{"url": first.url, "kind": kind, "can": []string{"open", "put", "lives"}})
	for in := json.NewDecoder(os.Stdin); ; {
		var r request
		if in.Decode(&r) != nil {
			return // the suite has closed standard input
		}
		var a reply
		switch s := servers[r.At]; r.Do {
		case "open":
			if s, err := start(); err != nil {
				a.Error = err.Error()
			} else {
				a.At, a.URL = fmt.Sprint("c", r.ID), s.url
				servers[a.At] = s
			}
		case "close":
			s.stop()
			delete(servers, r.At)
		case "put":
			a = put(s.url, r)
		case "delete":
			a = del(s.url, r)
		case "compact":
			a = compact(s.url)
		}
		a.ID = r.ID
		_ = out.Encode(a)
	}
}
