package benchmarks

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// An observation has the measurements of a bystander during a storm.
type observation struct {
	WatchP50, WatchP99, WriteP99 time.Duration
	Events, Refused              int
	Err                          string
}

// serveBystander is the main function of a load process whose kind is "bystander". It writes small
// objects in a namespace, and watches that namespace, until a line arrives on its standard input.
// Then it prints an observation.
func (l loadSpec) serveBystander() error {
	url := "http://" + l.Addr + "/" + l.Clients.Path
	resp, err := http.Get(url + "?" + benchQuery)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	var b bystander
	go b.watch(resp.Body)
	fmt.Println("started")
	fmt.Scanln()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() { b.writeUntil(stop, url) })
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	close(stop)
	writing.Wait()
	time.Sleep(100 * time.Millisecond) // for the event of the last write
	return json.NewEncoder(os.Stdout).Encode(b.observation())
}

type bystander struct {
	mu             sync.Mutex
	writes, events samples
	refused        int
	err            error
}

var sentAt = []byte(`"at":`)

// watch reads events of one line each. Each object holds the time at which its write began.
func (b *bystander) watch(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		now := time.Now().UnixNano()
		if err != nil {
			b.fail(err)
			return
		}
		_, after, ok := bytes.Cut(line, sentAt)
		digits, _, _ := bytes.Cut(after, []byte("}"))
		at, err := strconv.ParseInt(string(digits), 10, 64)
		if !ok || err != nil {
			continue // a bookmark
		}
		b.mu.Lock()
		b.events = append(b.events, time.Duration(now-at))
		b.mu.Unlock()
	}
}

func (b *bystander) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = cmp.Or(b.err, err)
}

// writeUntil creates 100 objects a second at url.
func (b *bystander) writeUntil(stop <-chan struct{}, url string) {
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for i := 0; ; i++ {
		select {
		case <-ticks.C:
		case <-stop:
			return
		}
		start := time.Now()
		body := fmt.Sprintf(stormHeader+`"metadata":{"name":"%d-%d"},"at":%d}`, start.UnixNano(), i, start.UnixNano())
		resp, err := http.Post(url, "application/json", bytes.NewReader([]byte(body)))
		if err != nil {
			b.fail(err)
			return
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		b.mu.Lock()
		b.writes = append(b.writes, time.Since(start))
		if resp.StatusCode != http.StatusCreated {
			b.refused++
		}
		b.mu.Unlock()
	}
}

func (b *bystander) observation() (o observation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return observation{Err: b.err.Error()}
	}
	if len(b.events) == 0 || len(b.writes) == 0 {
		return observation{Err: "no events"}
	}
	return observation{
		WatchP50: b.events.quantile(0.5), WatchP99: b.events.quantile(0.99), WriteP99: b.writes.quantile(0.99),
		Events: len(b.events), Refused: b.refused,
	}
}
