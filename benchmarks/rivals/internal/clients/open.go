package clients

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/servers"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A Target specifies where and how a load process opens watches.
type Target struct {
	// Client is the kind of clients: tcp, http1, websocket, centrifuge, h2, h2-tls or grpc.
	Client string
	Addr   string
	// Path is the path and query of a watch. Token is an optional bearer token.
	Path, Token string
}

// streamsPerConn is the number of HTTP/2 streams on one connection.
const streamsPerConn = 100

// An opener opens watches. The returned Reader returns the bytes of the events, and possibly other
// bytes between the events.
type opener interface {
	open() (io.Reader, error)
}

func newOpener(t Target) (opener, error) {
	get := "GET " + t.Path + " HTTP/1.1\r\nHost: rivals\r\n"
	const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	switch t.Client {
	case "tcp":
		return rawOpener{t.Addr, "\r\n\r\n", ""}, nil
	case "http1":
		return rawOpener{t.Addr, get + "\r\n", ""}, nil
	case "websocket":
		return rawOpener{t.Addr, get + upgrade + "\r\n", ""}, nil
	case "centrifuge":
		return rawOpener{t.Addr, get + upgrade + "\r\n", maskedText(`{"id":1,"connect":{}}`)}, nil
	case "h2", "h2-tls":
		return &h2Opener{target: t}, nil
	case "grpc":
		return &grpcOpener{addr: t.Addr}, nil
	}
	return nil, fmt.Errorf("unknown client %q", t.Client)
}

// A rawOpener opens watches over HTTP/1.1 or bare TCP.
type rawOpener struct {
	addr, request string
	message       string // sent after the response
}

func (o rawOpener) open() (io.Reader, error) {
	conn, err := net.Dial("tcp", o.addr)
	if err != nil {
		return nil, err
	}
	// Limit the buffer, so that the kernel cannot receive everything for a client that stops
	// reading.
	if err := conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, o.request); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	status, err := r.ReadString('\n')
	if err != nil || strings.HasPrefix(status, "HTTP/1.1 4") || strings.HasPrefix(status, "HTTP/1.1 5") {
		return nil, fmt.Errorf("response %q: %w", status, err)
	}
	chunked := false
	for line := status; line != "\r\n"; {
		if line, err = r.ReadString('\n'); err != nil {
			return nil, err
		}
		chunked = chunked || line == "Transfer-Encoding: chunked\r\n"
	}
	if _, err = io.WriteString(conn, o.message); err != nil || !chunked {
		return r, err
	}
	return httputil.NewChunkedReader(r), nil // because the header of a chunk can split an event
}

// maskedText returns text as a WebSocket message of a client, with a mask of zero. text must have
// fewer than 126 bytes.
func maskedText(text string) string {
	return string([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}) + text
}

// An h2Opener opens watches over HTTP/2, with the client of net/http.
type h2Opener struct {
	target Target

	mu sync.Mutex
	// Guarded by mu.
	client *http.Client
	opened int
}

// next returns the client for the next stream.
func (o *h2Opener) next() *http.Client {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.opened%streamsPerConn == 0 {
		t := &http.Transport{
			Protocols: new(http.Protocols), DisableCompression: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}
		t.Protocols.SetHTTP2(true)
		t.Protocols.SetUnencryptedHTTP2(true)
		o.client = &http.Client{Transport: t}
	}
	o.opened++
	return o.client
}

func (o *h2Opener) open() (io.Reader, error) {
	scheme := "http://"
	if o.target.Client == "h2-tls" {
		scheme = "https://"
	}
	r, err := http.NewRequest(http.MethodGet, scheme+o.target.Addr+o.target.Path, nil)
	if err != nil {
		return nil, err
	}
	if o.target.Token != "" {
		r.Header.Set("Authorization", "Bearer "+o.target.Token)
	}
	res, err := o.next().Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("response %s", res.Status)
	}
	return res.Body, nil
}

// A grpcOpener opens watches with the client of gRPC.
type grpcOpener struct {
	addr string

	mu sync.Mutex
	// Guarded by mu.
	conn   *grpc.ClientConn
	opened int
}

func (o *grpcOpener) next() (*grpc.ClientConn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.opened%streamsPerConn == 0 {
		conn, err := grpc.NewClient(o.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		o.conn = conn
	}
	o.opened++
	return o.conn, nil
}

func (o *grpcOpener) open() (io.Reader, error) {
	conn, err := o.next()
	if err != nil {
		return nil, err
	}
	stream, err := conn.NewStream(context.Background(), &servers.GRPCWatch,
		"/"+servers.GRPCService+"/"+servers.GRPCWatch.StreamName)
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(&emptypb.Empty{}); err != nil {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	_, err = stream.Header() // waits until the server has subscribed the stream
	return &grpcReader{stream: stream}, err
}

// A grpcReader returns the bytes of the messages of a stream.
type grpcReader struct {
	stream  grpc.ClientStream
	message wrapperspb.BytesValue
	rest    []byte
}

// Read implements io.Reader.
func (r *grpcReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if err := r.stream.RecvMsg(&r.message); err != nil {
			return 0, err
		}
		r.rest = r.message.Value
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
