package benchcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
)

// A bench measures a target with one transport after the other.
type bench struct {
	*options
	target   target
	template map[string]json.RawMessage
	progress *progress
}

// A run is the measurement of one transport.
type run struct {
	*bench
	transport string
	writer    *writer
	recorder  *recorder
	reader    *client.Remote // opens the watches
	bytes     atomic.Int64   // bytes that the watches received, on the wire
	readOnly  error          // the reason for not writing, or nil
}

// measure measures one transport. The result is nil if the run ended before all watches were open.
// An interrupted run is not an error.
func (b *bench) measure(ctx context.Context, transport string) (result *Result, err error) {
	r := &run{bench: b, transport: transport, recorder: new(recorder)}
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	defer r.reader.Close()
	defer r.writer.remote.Close()
	defer func() {
		b.progress.phase("%s: deleting the objects", transport)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = nil
		}
		err = errors.Join(err, r.writer.delete(ctx))
		b.progress.end()
	}()
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	b.progress.phase("%s: opening %d watches", transport, b.watchers)
	f, err := openFleet(ctx, b.watchers, r.reader, r.writer, b.timeout)
	if err != nil {
		return nil, err
	}
	defer f.close()
	began := time.Now()
	err = r.work(ctx, began)
	elapsed := time.Since(began)
	if err == nil {
		err = r.settle(f)
	}
	return r.result(f, elapsed), err
}

// connect makes the clients, and checks that the collection can be read.
func (r *run) connect(ctx context.Context) error {
	c := r.Connection
	c.Transport = r.transport
	c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countingConn{conn, &r.bytes}, nil
	}
	var err error
	if r.reader, err = c.Remote(r.target.url); err != nil {
		return err
	}
	r.reader.Trace = &client.Trace{Lost: func(err error, _ time.Duration) {
		r.recorder.update(func() { r.recorder.reconnects++; r.recorder.lastError = err })
	}}
	c = r.Connection
	c.Transport = ""
	remote, err := c.Remote(r.target.url)
	if err != nil {
		return err
	}
	r.writer = &writer{
		remote: remote, target: r.target, template: r.template, padding: padding(int(r.size)),
		id:      fmt.Sprintf("%08x", rand.Uint32()),
		timeout: r.timeout, recorder: r.recorder,
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	_, err = remote.List(ctx, listwatch.Query{Limit: 1})
	return err
}

// prepare creates the objects, or notes why bench does not write.
func (r *run) prepare(ctx context.Context) error {
	if r.options.readOnly {
		r.readOnly = errors.New("--read-only is set")
		return nil
	}
	r.progress.phase("%s: creating %d objects", r.transport, r.objects)
	err := r.writer.create(ctx, r.objects)
	switch listwatch.CodeOf(err) {
	case listwatch.Forbidden, listwatch.Unauthorized, listwatch.Unsupported:
		if len(r.writer.keys) == 1 && !r.writer.created {
			r.readOnly, r.writer.keys = err, nil // nothing was created
			r.progress.note("the server permits no writes (%v); measuring only watches and the events of other writers",
				err)
			return nil
		}
	case listwatch.Invalid:
		return fmt.Errorf(
			"%w; choose a resource without required fields, such as configmaps, or pass an object with --template", err)
	}
	return err
}

// work writes for the duration, and samples the progress. It returns early if ctx ends.
func (r *run) work(ctx context.Context, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, r.duration)
	defer cancel()
	r.recorder.start(began, r.bytes.Load())
	r.progress.phase("%s: measuring for %v", r.transport, r.duration)
	written := make(chan error, 1)
	go func() {
		if r.readOnly != nil {
			<-ctx.Done()
			written <- nil
			return
		}
		written <- r.writer.write(ctx, r.objects, r.rate)
	}()
	ticker := time.NewTicker(min(time.Second, r.duration/4+1))
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			s := r.recorder.sample(now, began, r.bytes.Load())
			_, writes := r.writer.log.snapshot()
			r.progress.set("%s: %.0f of %.0f s: %d writes, %.0f events/s, p99 %.2f ms",
				r.transport, s.Second, r.duration.Seconds(), writes, s.EventsPerSecond, s.Latency.P99)
		case err := <-written:
			r.recorder.sample(time.Now(), began, r.bytes.Load())
			return err
		}
	}
}

// settle waits until all watchers have received all writes, as long as there is progress.
func (r *run) settle(f *fleet) error {
	_, writes := r.writer.log.snapshot()
	want := int64(writes) * int64(len(f.watchers))
	r.progress.phase("%s: waiting for the last events", r.transport)
	_, err := poll(context.Background(), r.timeout, func() (int64, bool, error) {
		r.recorder.mu.Lock()
		defer r.recorder.mu.Unlock()
		return r.recorder.received, r.recorder.received >= want, nil
	})
	return err // result counts the missing events
}

// poll calls step until step reports done. It returns false if the reported progress does not
// change within the timeout.
func poll(ctx context.Context, timeout time.Duration,
	step func() (progress int64, done bool, err error),
) (bool, error) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	last, since := int64(-1), time.Now()
	for {
		progress, done, err := step()
		if done || err != nil {
			return done, err
		}
		if progress != last {
			last, since = progress, time.Now()
		}
		if time.Since(since) > timeout {
			return false, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

type countingConn struct {
	net.Conn
	received *atomic.Int64
}

// Read implements net.Conn.
func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}
