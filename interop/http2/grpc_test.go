package http2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// newGRPCServer returns the handler of a gRPC server.
func newGRPCServer(t *testing.T) http.Handler {
	s := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(s, grpcService{})
	t.Cleanup(s.Stop)
	return s
}

type grpcService struct {
	testgrpc.UnimplementedTestServiceServer
}

func payload(n int32) *testgrpc.Payload { return &testgrpc.Payload{Body: make([]byte, n)} }

func (grpcService) UnaryCall(_ context.Context, r *testgrpc.SimpleRequest) (*testgrpc.SimpleResponse, error) {
	if s := r.GetResponseStatus(); s.GetCode() != 0 {
		return nil, status.Error(codes.Code(s.Code), s.Message)
	}
	return &testgrpc.SimpleResponse{Payload: payload(r.ResponseSize)}, nil
}

func (grpcService) StreamingInputCall(stream testgrpc.TestService_StreamingInputCallServer) error {
	total := 0
	for {
		r, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(&testgrpc.StreamingInputCallResponse{AggregatedPayloadSize: int32(total)})
		} else if err != nil {
			return err
		}
		total += len(r.GetPayload().GetBody())
	}
}

func (grpcService) StreamingOutputCall(r *testgrpc.StreamingOutputCallRequest,
	stream testgrpc.TestService_StreamingOutputCallServer,
) error {
	for _, p := range r.ResponseParameters {
		if err := stream.Send(&testgrpc.StreamingOutputCallResponse{Payload: payload(p.Size)}); err != nil {
			return err
		}
	}
	return nil
}

func (grpcService) FullDuplexCall(stream testgrpc.TestService_FullDuplexCallServer) error {
	for {
		r, err := stream.Recv()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.Send(&testgrpc.StreamingOutputCallResponse{Payload: r.Payload}); err != nil {
			return err
		}
	}
}

// runGRPC calls the methods of the service. While data arrives, grpc-go sends a PING for each round
// trip, and a WINDOW_UPDATE for each message.
func runGRPC(t *testing.T, s *server, _ []exchange) map[string]result {
	config := s.ClientTLS.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := grpc.NewClient(strings.TrimPrefix(s.URL(""), "https://"),
		grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := testgrpc.NewTestServiceClient(conn)
	results := map[string]result{}
	for name, call := range map[string]func(ctx context.Context) (received int, err error){
		"unary": func(ctx context.Context) (int, error) {
			r, err := c.UnaryCall(ctx, &testgrpc.SimpleRequest{Payload: payload(1 << 20), ResponseSize: 2 << 20})
			return len(r.GetPayload().GetBody()), err
		},
		"a status": func(ctx context.Context) (int, error) {
			_, err := c.UnaryCall(ctx,
				&testgrpc.SimpleRequest{ResponseStatus: &testgrpc.EchoStatus{Code: 9, Message: "50 %\nünwanted"}})
			return 0, err
		},
		"an unknown method": func(ctx context.Context) (int, error) {
			_, err := c.EmptyCall(ctx, &testgrpc.Empty{})
			return 0, err
		},
		"a deadline": func(ctx context.Context) (int, error) {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			stream, err := c.FullDuplexCall(ctx)
			if err != nil {
				return 0, err
			}
			_, err = stream.Recv()
			// The text may be the server's or the client's.
			return 0, errors.New(status.Code(err).String())
		},
		"client streaming": func(ctx context.Context) (int, error) {
			stream, err := c.StreamingInputCall(ctx)
			for i := 0; err == nil && i < 2000; i++ {
				err = stream.Send(&testgrpc.StreamingInputCallRequest{Payload: payload(32 << 10)})
			}
			if err != nil {
				return 0, err
			}
			r, err := stream.CloseAndRecv()
			return int(r.GetAggregatedPayloadSize()), err
		},
		"server streaming": func(ctx context.Context) (int, error) {
			r := &testgrpc.StreamingOutputCallRequest{}
			for range 20_000 {
				r.ResponseParameters = append(r.ResponseParameters, &testgrpc.ResponseParameters{Size: 4 << 10})
			}
			stream, err := c.StreamingOutputCall(ctx, r)
			if err != nil {
				return 0, err
			}
			return receiveAll(stream.Recv)
		},
		"ping-pong": func(ctx context.Context) (int, error) {
			stream, err := c.FullDuplexCall(ctx)
			if err != nil {
				return 0, err
			}
			for range 10_000 {
				if err := stream.Send(&testgrpc.StreamingOutputCallRequest{Payload: payload(10)}); err != nil {
					return 0, err
				}
				if _, err := stream.Recv(); err != nil {
					return 0, err
				}
			}
			return 10_000, stream.CloseSend()
		},
	} {
		n, err := call(t.Context())
		results[name] = result{Length: int64(n), Error: fmt.Sprint(err)}
	}
	return results
}

func receiveAll(receive func() (*testgrpc.StreamingOutputCallResponse, error)) (n int, err error) {
	for {
		r, err := receive()
		if err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n += len(r.GetPayload().GetBody())
	}
}
