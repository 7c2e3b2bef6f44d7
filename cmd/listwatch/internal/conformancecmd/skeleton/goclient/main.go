// An adapter for listwatch conformance: net/http with the control hook of docs/conformance-hook.md.
//
//	listwatch conformance client --exec 'go run adapter.go' --known-failures known_failures.txt
//
// Replace the function follow with your client.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

// A watch is a request of the suite.
type watch struct {
	ID      int
	URL     string
	Headers map[string]string
	Limit   int64 // the maximum number of bytes of an event, or 0
}

// A line is a report to the suite about a watch.
type line map[string]any

var out = struct {
	sync.Mutex
	*json.Encoder
}{Encoder: json.NewEncoder(os.Stdout)}

func reply(l line) {
	out.Lock()
	defer out.Unlock()
	_ = out.Encode(l)
}

var client = &http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
	if len(via) > 10 {
		return errors.New("too many redirects")
	}
	if r.URL.Host != via[0].URL.Host {
		r.Header = http.Header{} // another server must not receive credentials
	}
	return nil
}}

// follow reports the events of a watch.
func follow(ctx context.Context, w watch) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL, nil)
	if err != nil {
		reply(line{"id": w.ID, "error": err.Error()})
		return
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Accept-Encoding", "identity")
	for name, value := range w.Headers {
		r.Header.Set(name, value)
	}
	response, err := client.Do(r)
	if err != nil {
		reply(line{"id": w.ID, "error": err.Error()})
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
		body := any(string(text))
		if json.Valid(text) {
			body = json.RawMessage(text)
		}
		reply(line{"id": w.ID, "status": response.StatusCode, "body": body})
		return
	}
	headers := map[string]string{}
	for name := range response.Header {
		headers[name] = response.Header.Get(name)
	}
	reply(line{"id": w.ID, "status": response.StatusCode, "headers": headers})
	limit := cmp.Or(w.Limit, 16<<20)
	body := &limitedReader{Reader: response.Body, left: limit}
	for events := json.NewDecoder(body); ; {
		var event json.RawMessage
		err := events.Decode(&event)
		rest, _ := io.ReadAll(events.Buffered())
		switch within := len(bytes.TrimSpace(rest)) > 0; {
		case err == nil && int64(len(event)) <= limit:
			reply(line{"id": w.ID, "event": event})
			body.left = limit
			continue
		case err == nil || errors.Is(err, errTooLarge):
			reply(line{"id": w.ID, "error": errTooLarge.Error(), "code": "Corrupt"})
		case errors.Is(err, io.EOF) && !within:
			reply(line{"id": w.ID, "end": true})
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || body.err != nil:
			reply(line{"id": w.ID, "error": err.Error(), "within": within})
		default:
			reply(line{"id": w.ID, "error": err.Error(), "code": "Corrupt"})
		}
		return
	}
}

var errTooLarge = errors.New("the event is too large")

// A limitedReader returns errTooLarge after left bytes. err is the error of the reader.
type limitedReader struct {
	io.Reader
	left int64
	err  error
}

// Read implements [io.Reader].
func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, errTooLarge
	}
	n, err := l.Reader.Read(p)
	l.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		l.err = err
	}
	return n, err
}

func main() {
	reply(line{"can": []string{"h1"}})
	watches := map[int]context.CancelFunc{}
	for in := json.NewDecoder(os.Stdin); ; {
		var request struct {
			Watch *watch
			Close struct{ ID int }
		}
		if err := in.Decode(&request); err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, err)
			}
			return
		}
		if w := request.Watch; w != nil {
			var ctx context.Context
			ctx, watches[w.ID] = context.WithCancel(context.Background())
			go follow(ctx, *w)
		} else if cancel := watches[request.Close.ID]; cancel != nil {
			cancel()
		}
	}
}
