package etcdtest

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// A Filter is called for each response, got, of one watch. In place of got, the client receives the
// responses that the Filter passes to send. Only one goroutine calls it.
type Filter func(got *pb.WatchResponse, send func(*pb.WatchResponse))

// A Proxy forwards requests to etcd. It can change the responses of watches, in order to
// reproduce bugs of etcd.
type Proxy struct {
	// URL is the address of the proxy.
	URL string
	// Watches counts the created watches.
	Watches atomic.Int64

	upstream *grpc.ClientConn

	mu sync.Mutex
	// Guarded by mu.
	filter  func(create *pb.WatchCreateRequest) Filter
	next    int
	cancels map[int]context.CancelFunc
}

// StartProxy starts a proxy for the etcd at url, which is stopped at the end of the test.
func StartProxy(t testing.TB, url string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{URL: "http://" + l.Addr().String(), cancels: make(map[int]context.CancelFunc)}
	p.upstream, err = grpc.NewClient(strings.TrimPrefix(url, "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(math.MaxInt32),
			grpc.MaxCallSendMsgSize(math.MaxInt32)))
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.UnknownServiceHandler(p.pass), grpc.ForceServerCodec(raw{}),
		grpc.MaxRecvMsgSize(math.MaxInt32))
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		p.upstream.Close()
	})
	return p
}

// Filter sets the function that chooses a Filter for each new watch. If the function or its
// result is nil, the responses are not changed.
func (p *Proxy) Filter(choose func(create *pb.WatchCreateRequest) Filter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filter = choose
}

// Cut closes all open watches. They receive no response that etcd sends after Cut has returned.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cancel := range p.cancels {
		cancel()
	}
}

// pass forwards one gRPC call.
func (p *Proxy) pass(_ any, down grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(down)
	ctx, cancel := context.WithCancel(down.Context())
	defer cancel()
	if m, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, m.Copy())
	}
	up, err := p.upstream.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	chosen := make(chan Filter, 1)
	watch := method == "/etcdserverpb.Watch/Watch"
	if watch {
		defer p.track(cancel)()
	} else {
		chosen <- nil
	}
	go p.passUp(up, down, watch, chosen) // returns when down's context ends
	return p.passDown(up, down, chosen)
}

func (p *Proxy) track(cancel context.CancelFunc) (forget func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	n := p.next
	p.cancels[n] = cancel
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.cancels, n)
	}
}

func (p *Proxy) passUp(up grpc.ClientStream, down grpc.ServerStream, watch bool, chosen chan<- Filter) {
	for first := watch; ; {
		var message []byte
		if err := down.RecvMsg(&message); err != nil {
			_ = up.CloseSend() // passDown returns the error
			return
		}
		if first {
			first = false
			chosen <- p.choose(message)
		}
		if up.SendMsg(&message) != nil {
			return
		}
	}
}

func (p *Proxy) choose(message []byte) Filter {
	var r pb.WatchRequest
	if proto.Unmarshal(message, &r) != nil || r.GetCreateRequest() == nil {
		return nil
	}
	p.Watches.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filter == nil {
		return nil
	}
	return p.filter(r.GetCreateRequest())
}

func (p *Proxy) passDown(up grpc.ClientStream, down grpc.ServerStream, chosen <-chan Filter) error {
	var filter Filter
	for first := true; ; first = false {
		var message []byte
		if err := up.RecvMsg(&message); err != nil {
			if err.Error() == "EOF" {
				return nil
			}
			return err
		}
		if err := up.Context().Err(); err != nil {
			return err // Cut was called after the message had arrived
		}
		if first {
			filter = <-chosen
		}
		if filter == nil {
			if err := down.SendMsg(&message); err != nil {
				return err
			}
			continue
		}
		var got pb.WatchResponse
		if err := proto.Unmarshal(message, &got); err != nil {
			return err
		}
		var failed error
		filter(&got, func(r *pb.WatchResponse) {
			data, err := proto.Marshal(r)
			if err == nil {
				err = down.SendMsg(&data)
			}
			if err != nil {
				failed = err
			}
		})
		if failed != nil {
			return failed
		}
	}
}

// raw is a codec that does not decode messages.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) ([]byte, error) {
	if p, ok := v.(*[]byte); ok {
		return *p, nil
	}
	return nil, fmt.Errorf("cannot forward a %T", v)
}

func (raw) Unmarshal(data []byte, v any) error {
	p, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot forward into a %T", v)
	}
	*p = append([]byte(nil), data...)
	return nil
}
