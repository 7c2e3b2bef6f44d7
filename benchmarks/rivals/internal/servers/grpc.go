package servers

import (
	"net"
	"sync"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const grpcBuffer = 256

// A grpcServer has one method with a stream of responses. It encodes a message once for all
// streams, as a [grpc.PreparedMsg].
type grpcServer struct {
	hub   hub[*grpcMessage]
	state []event.Object
}

// A grpcMessage is encoded by the first stream that sends it, because encoding needs a stream.
type grpcMessage struct {
	data     []byte
	once     sync.Once
	prepared grpc.PreparedMsg
	err      error
}

func (m *grpcMessage) send(stream grpc.ServerStream) error {
	m.once.Do(func() { m.err = m.prepared.Encode(stream, wrapperspb.Bytes(m.data)) })
	if m.err != nil {
		return m.err
	}
	return stream.SendMsg(&m.prepared)
}

// GRPCWatch describes the method. A compiler for .proto files generates the same description.
var GRPCWatch = grpc.StreamDesc{
	StreamName: "Watch", ServerStreams: true,
	Handler: func(server any, stream grpc.ServerStream) error {
		var request emptypb.Empty
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		return server.(*grpcServer).watch(stream)
	},
}

// GRPCService is the name of the service with the method GRPCWatch.
const GRPCService = "rivals.Events"

func startGRPC(l net.Listener, state []event.Object) (Server, error) {
	s, server := &grpcServer{state: state}, grpc.NewServer()
	server.RegisterService(
		&grpc.ServiceDesc{ServiceName: GRPCService, HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{GRPCWatch}}, s)
	go server.Serve(l)
	return s, nil
}

func (s *grpcServer) Publish(o event.Object) { s.hub.publish(&grpcMessage{data: o.Modified()}) }

func (s *grpcServer) watch(stream grpc.ServerStream) error {
	events := s.hub.subscribe(grpcBuffer)
	defer s.hub.unsubscribe(events)
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for _, o := range s.state {
		if err := stream.SendMsg(wrapperspb.Bytes(o.Added())); err != nil {
			return err
		}
	}
	for {
		select {
		case m, ok := <-events:
			if !ok {
				return status.Error(codes.ResourceExhausted, "the client reads too slowly")
			}
			if err := m.send(stream); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}
