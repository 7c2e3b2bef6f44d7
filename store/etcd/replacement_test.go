package etcd

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/listwatch/listwatch"
)

// A replacement stands for a server that replaces etcd, such as kine. Its responses have no cluster
// ID.
type replacement struct{ pb.UnimplementedKVServer }

func (replacement) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 7}}, nil
}

// The versions of kine can go back. The store could not distinguish this from a restored backup.
func TestReplacementOfEtcdIsRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterKVServer(server, replacement{})
	go func() { _ = server.Serve(listener) }() // Stop ends it
	defer server.Stop()
	db, err := Open(t.Context(), Options{Endpoints: []string{"http://" + listener.Addr().String()}})
	if err == nil {
		_ = db.Close()
	}
	if !errors.Is(err, listwatch.Unsupported) || !strings.Contains(err.Error(), "kine") {
		t.Errorf("got %v, want an error of code Unsupported that names kine", err)
	}
}
