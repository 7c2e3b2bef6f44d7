// Command client implements the control hook for clients (docs/conformance-hook.md). Its flags
// select behavior that is correct but differs from this module's client.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

var (
	bookmarks = flag.Bool("bookmarks", false, "report every bookmark as an event")
	before    = flag.Bool("before", false, "resume from the version before the newest")
	drops     = flag.Bool("drops", false, "drop what was read of a broken response but not used yet")
	abilities = flag.String("can", "h1,resume", "abilities to announce")
)

type request struct {
	ID              int
	URL             string
	ResourceVersion string
	Resume          bool
}

var output sync.Mutex

func reply(line any) {
	data, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	fmt.Printf("%s\n", data)
}

func main() {
	flag.Parse()
	reply(map[string]any{"can": strings.Split(*abilities, ",")})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var line struct{ Watch *request }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Watch != nil {
			go line.Watch.run() // ends with the process
		}
	}
}

type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

func (e event) version() string {
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	_ = json.Unmarshal(e.Object, &object) // an object without a version has none
	return object.Metadata.ResourceVersion
}

// run watches the URL once, or until the process ends.
func (r *request) run() {
	at, newest := r.ResourceVersion, r.ResourceVersion
	seen := map[string]bool{}
	for {
		err := r.stream(at, func(e event) {
			if r.Resume && (seen[string(e.Object)] || e.Type == "BOOKMARK" && !*bookmarks) {
				newest, at = e.version(), e.version()
				return
			}
			if seen[string(e.Object)] = true; e.version() != newest {
				at = e.version()
				if *before && e.Type != "BOOKMARK" {
					at = newest
				}
				newest = e.version()
			}
			reply(map[string]any{"id": r.ID, "event": e})
		})
		switch {
		case r.Resume:
			time.Sleep(10 * time.Millisecond)
			continue
		case err == nil:
			reply(map[string]any{"id": r.ID, "end": true})
		default:
			within := errors.Is(err, io.ErrUnexpectedEOF)
			reply(map[string]any{"id": r.ID, "error": err.Error(), "within": within})
		}
		return
	}
}

// stream passes the events of one stream to f.
func (r *request) stream(version string, f func(event)) error {
	u, err := url.Parse(r.URL)
	if err != nil {
		return err
	}
	q := u.Query()
	q.Set("resourceVersion", version)
	u.RawQuery = q.Encode()
	resp, err := http.Get(u.String())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	reply(map[string]any{"id": r.ID, "status": resp.StatusCode, "headers": map[string]string{}, "transport": "h1"})
	body := io.Reader(resp.Body)
	if *drops {
		body = newDropper(resp.Body)
	}
	events := json.NewDecoder(body)
	for {
		var e event
		if err := events.Decode(&e); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		f(e)
	}
}

// A dropper delays the bytes that it reads. It drops them if the response breaks during the delay.
type dropper struct {
	chunks chan chunk
	rest   []byte
	err    error
}

type chunk struct {
	data []byte
	err  error
}

func newDropper(r io.Reader) *dropper {
	d := &dropper{chunks: make(chan chunk, 1)}
	go func() { // ends with the response
		for {
			p := make([]byte, 64<<10)
			n, err := r.Read(p)
			d.chunks <- chunk{p[:n], err}
			if err != nil {
				return
			}
		}
	}()
	return d
}

func (d *dropper) Read(p []byte) (int, error) {
	for len(d.rest) == 0 && d.err == nil {
		c := <-d.chunks
		d.rest, d.err = c.data, c.err
		select {
		case next := <-d.chunks:
			d.rest, d.err = append(d.rest, next.data...), next.err
		case <-time.After(50 * time.Millisecond):
		}
		if d.err != nil && d.err != io.EOF {
			d.rest, d.err = nil, errors.New("the response broke")
		}
	}
	n := copy(p, d.rest)
	if d.rest = d.rest[n:]; n == 0 {
		return 0, d.err
	}
	return n, nil
}
