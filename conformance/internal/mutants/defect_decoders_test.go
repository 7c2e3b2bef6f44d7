package mutants

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// onRequests returns a function that wraps a client. The wrapper calls request to alter each
// request, and receiver to replace each receiver. Either function may be nil.
func onRequests(
	request func(*transport.Request), receiver func(transport.Receiver) transport.Receiver,
) func(transport.Client) transport.Client {
	return func(c transport.Client) transport.Client { return &alteredClient{c, request, receiver} }
}

type alteredClient struct {
	transport.Client
	request  func(*transport.Request)
	receiver func(transport.Receiver) transport.Receiver
}

// Dial sends an altered copy of r and returns an altered receiver.
func (a *alteredClient) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	altered := *r
	if a.request != nil {
		a.request(&altered)
	}
	receiver, err := a.Client.Dial(ctx, &altered)
	if err != nil || a.receiver == nil {
		return receiver, err
	}
	return a.receiver(receiver), nil
}

// CloseIdleConnections closes the idle connections of the wrapped client, if it has this method.
func (a *alteredClient) CloseIdleConnections() {
	if idle, ok := a.Client.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
}

// withDecoder returns a function that wraps a client. The wrapper decodes the framing f with
// decoder.
func withDecoder(f framing.Framer, decoder func(io.Reader) framing.Decoder) func(transport.Client) transport.Client {
	return onRequests(func(r *transport.Request) {
		all := r.Framings
		if all == nil {
			all = []framing.Framer{framing.JSON{}}
		}
		r.Framings = nil
		for _, g := range all {
			if g == f {
				g = &replacedDecoder{f, decoder}
			}
			r.Framings = append(r.Framings, g)
		}
	}, nil)
}

type replacedDecoder struct {
	framing.Framer
	decoder func(io.Reader) framing.Decoder
}

// NewDecoder returns the replacement decoder.
func (r *replacedDecoder) NewDecoder(in io.Reader, _ int) framing.Decoder { return r.decoder(in) }

// decodeFunc implements framing.Decoder.
type decodeFunc func() (framing.WatchEvent, error)

// Decode calls d.
func (d decodeFunc) Decode() (framing.WatchEvent, error) { return d() }

// eventPerRead returns a decoder that treats the result of each Read as exactly one event.
func eventPerRead(r io.Reader) framing.Decoder {
	buf := make([]byte, 1<<20)
	return decodeFunc(func() (framing.WatchEvent, error) {
		n, err := r.Read(buf)
		if n == 0 {
			return framing.WatchEvent{}, err
		}
		return firstEvent(buf[:n])
	})
}

// eventPerLine returns a decoder that treats each line as one event. The first member of each event
// must be its type.
func eventPerLine(r io.Reader) framing.Decoder {
	in := bufio.NewReader(r)
	return decodeFunc(func() (framing.WatchEvent, error) {
		line, err := in.ReadBytes('\n')
		switch {
		case len(line) == 0:
			return framing.WatchEvent{}, err
		case !bytes.HasPrefix(line, []byte(`{"type":`)):
			return framing.WatchEvent{}, &listwatch.Error{Code: listwatch.Corrupt, Message: "no event"}
		}
		return firstEvent(line)
	})
}

// firstEvent decodes the event at the start of text.
func firstEvent(text []byte) (framing.WatchEvent, error) {
	var e struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&e); err != nil {
		return framing.WatchEvent{}, &listwatch.Error{Code: listwatch.Corrupt, Err: err}
	}
	return framing.WatchEvent{Type: e.Type, Object: e.Object}, nil
}

// preallocatingDecoder returns a decoder that reads a length prefix, allocates that many bytes, up
// to 16 MiB, and then rejects the event.
func preallocatingDecoder(r io.Reader) framing.Decoder {
	return decodeFunc(func() (framing.WatchEvent, error) {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return framing.WatchEvent{}, err
		}
		memory := make([]byte, min(binary.BigEndian.Uint32(length[:]), 16<<20))
		return framing.WatchEvent{}, &listwatch.Error{Code: listwatch.Corrupt, Message: string(memory[:1])}
	})
}

// skipInvalidElements returns a decoder of JSON text sequences that ignores invalid elements.
func skipInvalidElements(r io.Reader) framing.Decoder {
	in := bufio.NewReader(r)
	return decodeFunc(func() (framing.WatchEvent, error) {
		for {
			element, err := in.ReadBytes('\n')
			if e, fault := firstEvent(bytes.Trim(element, "\x1e")); fault == nil && e.Object != nil {
				return e, nil
			}
			if err != nil {
				return framing.WatchEvent{}, err
			}
		}
	})
}

// alteredReceiver is a receiver that replaces errors.
type alteredReceiver struct {
	transport.Receiver
	end func(error) error
}

// Receive replaces an error with the result of end.
func (a *alteredReceiver) Receive() (framing.WatchEvent, error) {
	e, err := a.Receiver.Receive()
	if err != nil {
		err = a.end(err)
	}
	return e, err
}

// onReceiveError returns a function that wraps a client. The wrapper replaces the error that ends a
// stream with the result of end.
func onReceiveError(end func(error) error) func(transport.Client) transport.Client {
	return onRequests(nil, func(r transport.Receiver) transport.Receiver { return &alteredReceiver{r, end} })
}

// withoutErrorCodes is a client whose watchers hide the error codes of the protocol.
type withoutErrorCodes struct{ *client.Remote }

func (w *withoutErrorCodes) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	watcher, err := w.Remote.Watch(ctx, q)
	return &codelessWatcher{watcher}, err
}

type codelessWatcher struct{ listwatch.Watcher }

// Next replaces every error with an error that has no code.
func (c *codelessWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := c.Watcher.Next(ctx, dst)
	if err != nil {
		err = errors.New("something went wrong")
	}
	return n, err
}
