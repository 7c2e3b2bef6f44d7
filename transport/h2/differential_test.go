package h2

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/listwatch/listwatch/internal/h2peer"
	"github.com/listwatch/listwatch/internal/testhttp"
)

var sequences = flag.Int("sequences", 100, "the number of sequences that TestLoopActsAsNetHTTP compares")

// TestLoopActsAsNetHTTP sends the same frames to our loop and to net/http's server, which call the
// same handlers. A sequence consists of random frames that a client may send, and ends with a frame
// that it must not send. Before that frame, all responses must be the same. The reactions to it
// must be the same too, except for the differences that are listed with the section of RFC 9113
// that allows them.
func TestLoopActsAsNetHTTP(t *testing.T) {
	differs := map[string]bool{}
	for i := range *sequences {
		seed := uint64(i)
		bad := badFrames[i%len(badFrames)]
		var ours, theirs map[uint32]answer
		var reaction, theirReaction string
		synctest.Test(t, func(t *testing.T) {
			ours, reaction = play(t, Config{}, seed, bad)
			theirs, theirReaction = play(t, Config{NetHTTP: true}, seed, bad)
		})
		if !reflect.DeepEqual(ours, theirs) {
			t.Errorf("sequence %d: the responses differ:\nours     %v\nnet/http %v", seed, ours, theirs)
		}
		if reaction != theirReaction {
			if differs[bad.name] = true; bad.allowed == "" {
				t.Errorf("sequence %d, %s: we react with %q, net/http with %q", seed, bad.name, reaction, theirReaction)
			}
		}
	}
	for _, bad := range badFrames {
		if bad.allowed != "" && !differs[bad.name] && *sequences >= len(badFrames) {
			t.Errorf("%s: the reactions no longer differ", bad.name)
		}
	}
}

// compared are the handlers that both servers call.
func compared() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/early", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) })
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 40_000)) })
	mux.HandleFunc("/hold", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/none", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/hints", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "body")
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Sum, Error")
		buffer, err := make([]byte, 1000), error(nil)
		for err == nil {
			var n int
			n, err = r.Body.Read(buffer)
			w.Write(buffer[:n])
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Error", fmt.Sprint(err == io.EOF))
		w.Header().Set("Sum", r.Trailer.Get("Sum"))
	})
	return mux
}

// An answer is the state of a stream, as the client sees it.
type answer struct {
	Status, Trailers string
	Body             int
	Ended            bool
	Reset            string
}

// A sequencer sends a sequence of frames and records the answers. A separate goroutine reads the
// answers; synctest.Wait keeps it and the sender from using the fields at the same time.
type sequencer struct {
	*rand.Rand
	*http2.Framer
	answers map[uint32]*answer
	goAway  string
	open    map[uint32]bool // streams that the client has not ended yet
	last    uint32
}

func play(t *testing.T, config Config, seed uint64, bad badFrame) (map[uint32]answer, string) {
	t.Helper()
	configure := func(srv *http.Server) { Configure(srv, config) }
	server := testhttp.Start(t, compared(), testhttp.Options{Configure: configure})
	conn, err := server.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		conn.Close()
		<-time.After(time.Minute) // net/http lingers after an error
	}()
	s := &sequencer{
		Rand: rand.New(rand.NewPCG(seed, 0)), Framer: http2.NewFramer(conn, nil),
		answers: map[uint32]*answer{}, open: map[uint32]bool{},
	}
	s.AllowIllegalWrites = true
	go s.read(conn)
	io.WriteString(conn, http2.ClientPreface)
	s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(s.IntN(70_000))})
	s.WriteSettingsAck()
	s.WriteWindowUpdate(0, 1<<29) // streams that compete for the window may take turns in any order
	for range s.IntN(25) {
		s.step()
		settle()
	}
	s.request("POST", "/hold", false)
	settle()
	before := map[uint32]answer{}
	for id, a := range s.answers {
		before[id] = *a
	}
	bad.send(s)
	settle()
	reaction := cmp.Or(s.goAway, "no GOAWAY")
	for _, id := range slices.Sorted(maps.Keys(s.answers)) {
		// A connection error ends all other streams.
		if a := *s.answers[id]; a != before[id] && (s.goAway == "" || s.goAway == "GOAWAY NO_ERROR") {
			reaction += fmt.Sprintf(", %d: %s %s %v", id, a.Status, a.Reset, a.Ended)
		}
	}
	return before, reaction
}

// settle waits until both servers have reset a stream that they have answered early. Our loop gives
// the client some time to end it (RFC 9113, section 8.1, requires no reset at all).
func settle() {
	<-time.After(2 * time.Second)
	synctest.Wait()
}

func (s *sequencer) read(conn net.Conn) {
	framer := http2.NewFramer(nil, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		id := frame.Header().StreamID
		a := s.answers[id]
		if a == nil {
			a = &answer{}
			if id > 0 {
				s.answers[id] = a
			}
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			if a.Status == "" || strings.HasPrefix(a.Status, "1") {
				a.Status = f.PseudoValue("status")
			} else {
				a.Trailers = fmt.Sprint(f.Fields)
			}
			a.Ended = f.StreamEnded()
		case *http2.DataFrame:
			a.Body += len(f.Data())
			a.Ended = f.StreamEnded()
		case *http2.RSTStreamFrame:
			a.Reset = f.ErrCode.String()
		case *http2.GoAwayFrame:
			s.goAway = "GOAWAY " + f.ErrCode.String()
		}
	}
}

// step sends frames that a client may send.
func (s *sequencer) step() {
	id := s.pick()
	switch n := s.IntN(12); {
	case n < 5 || id == 0:
		paths := []string{"/echo", "/echo", "/early", "/big", "/hold", "/abort", "/none", "/hints", "/missing"}
		method := []string{"GET", "HEAD", "POST", "POST", "POST"}[s.IntN(5)]
		s.request(method, paths[s.IntN(len(paths))], method != "POST" || s.IntN(3) == 0)
	case n == 5:
		s.WritePing(false, [8]byte{})
	case n == 6:
		s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(s.IntN(70_000))})
	case n == 7:
		s.WriteWindowUpdate(id, uint32(1+s.IntN(10_000)))
	case n == 8:
		s.WritePriority(id, http2.PriorityParam{StreamDep: id + 2})
		s.WriteRawFrame(0xfa, 0, id, []byte("unknown"))
	case n == 9:
		s.WriteRSTStream(id, http2.ErrCodeCancel)
		delete(s.open, id)
		s.answers[id] = &answer{Reset: "by the client"}
	case n == 10:
		s.headers(id, true, "sum", "42")
		delete(s.open, id)
	default:
		end := s.IntN(3) == 0
		s.WriteData(id, end, make([]byte, s.IntN(1000)))
		if end {
			delete(s.open, id)
		}
	}
}

// pick returns a stream that is open on both sides, or 0.
func (s *sequencer) pick() uint32 {
	maps.DeleteFunc(s.open, func(id uint32, _ bool) bool {
		a := s.answers[id]
		return a != nil && (a.Reset != "" || a.Ended)
	})
	ids := slices.Sorted(maps.Keys(s.open))
	if len(ids) == 0 {
		return 0
	}
	return ids[s.IntN(len(ids))]
}

func (s *sequencer) request(method, path string, end bool, fields ...string) {
	s.last += 2
	if s.last == 2 {
		s.last = 1
	}
	s.open[s.last] = !end
	if end {
		delete(s.open, s.last)
	}
	pseudo := []string{":method", method, ":scheme", "http", ":authority", "h", ":path", path}
	s.headers(s.last, end, append(pseudo, fields...)...)
}

func (s *sequencer) headers(id uint32, end bool, fields ...string) {
	s.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: h2peer.HeaderBlock(fields...), EndHeaders: true, EndStream: end,
	})
}

// A badFrame is a frame that a client must not send. Before it, the sequence has opened the stream
// s.last: a POST without an end.
type badFrame struct {
	name    string
	send    func(s *sequencer)
	allowed string // why our reaction and net/http's may differ; empty if they must not
}

var badFrames = []badFrame{
	{"DATA on an idle stream", func(s *sequencer) { s.WriteData(s.last+2, true, nil) }, ""},
	{"WINDOW_UPDATE on an idle stream", func(s *sequencer) { s.WriteWindowUpdate(s.last+2, 1) }, ""},
	{"RST_STREAM on an idle stream", func(s *sequencer) { s.WriteRSTStream(s.last+2, http2.ErrCodeCancel) }, ""},
	{"an even stream", func(s *sequencer) { s.headers(s.last+1, true, ":method", "GET") }, ""},
	{"a stream that was skipped", func(s *sequencer) {
		s.last += 2
		s.request("GET", "/early", true)
		s.headers(s.last-2, true, ":method", "GET")
	}, "5.1.1 wants PROTOCOL_ERROR, 5.1 STREAM_CLOSED: the stream is closed"},
	{"DATA after END_STREAM", func(s *sequencer) {
		s.WriteData(s.last, true, nil)
		s.WriteData(s.last, true, nil)
	}, ""},
	{"HEADERS after END_STREAM", func(s *sequencer) {
		s.WriteData(s.last, true, nil)
		s.headers(s.last, true, "a", "b")
	}, ""},
	{"DATA after RST_STREAM", func(s *sequencer) { s.WriteRSTStream(s.last, 8); s.WriteData(s.last, true, nil) }, ""},
	{"HEADERS after RST_STREAM", func(s *sequencer) {
		s.WriteRSTStream(s.last, 8)
		s.headers(s.last, true, "a", "b")
	}, "5.1: STREAM_CLOSED, because the stream is closed"},
	{"WINDOW_UPDATE of zero", func(s *sequencer) {
		s.WriteRawFrame(http2.FrameWindowUpdate, 0, s.last, make([]byte, 4))
	}, ""},
	{"WINDOW_UPDATE of zero for the connection", func(s *sequencer) {
		s.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, make([]byte, 4))
	}, ""},
	{"a window that overflows", func(s *sequencer) { s.WriteWindowUpdate(s.last, 1<<31-1) }, ""},
	{"a connection window that overflows", func(s *sequencer) { s.WriteWindowUpdate(0, 1<<31-1) }, ""},
	{"a window setting that is too large", func(s *sequencer) {
		s.WriteSettings(http2.Setting{ID: 4, Val: 1 << 31})
	}, ""},
	{"a frame size that is too small", func(s *sequencer) { s.WriteSettings(http2.Setting{ID: 5, Val: 1}) }, ""},
	{"SETTINGS of a wrong length", func(s *sequencer) {
		s.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 5))
	}, ""},
	{"PING of a wrong length", func(s *sequencer) { s.WriteRawFrame(http2.FramePing, 0, 0, make([]byte, 5)) }, ""},
	{"RST_STREAM of a wrong length", func(s *sequencer) {
		s.WriteRawFrame(http2.FrameRSTStream, 0, s.last, make([]byte, 5))
	}, ""},
	{"PRIORITY of a wrong length", func(s *sequencer) {
		s.WriteRawFrame(http2.FramePriority, 0, s.last, make([]byte, 4))
	}, ""},
	{"a stream that depends on itself", func(s *sequencer) {
		s.WritePriority(s.last, http2.PriorityParam{StreamDep: s.last})
	}, "5.4.1: a stream error may be a connection error"},
	{"PUSH_PROMISE", func(s *sequencer) { s.WriteRawFrame(http2.FramePushPromise, 4, s.last, make([]byte, 4)) }, ""},
	{"CONTINUATION without HEADERS", func(s *sequencer) { s.WriteContinuation(s.last, true, nil) }, ""},
	{"a frame within a header block", func(s *sequencer) {
		s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.last + 2, BlockFragment: []byte{0x82}})
		s.WritePing(false, [8]byte{})
	}, ""},
	{"padding that is too long", func(s *sequencer) {
		s.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, s.last, []byte{9})
	}, ""},
	{"a frame that is too large", func(s *sequencer) {
		s.WriteRawFrame(http2.FrameData, 0, s.last, make([]byte, 16<<10+1))
	}, ""},
	{"an index of zero", func(s *sequencer) {
		s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.last + 2, BlockFragment: []byte{0x80}, EndHeaders: true})
	}, ""},
	{"an uppercase field", func(s *sequencer) { s.request("GET", "/early", true, "X", "y") }, ""},
	{"a field of HTTP/1.1", func(s *sequencer) {
		s.request("GET", "/early", true, "connection", "close")
	}, "8.1.1: the request is malformed; a response may come before the reset"},
	{"TE but trailers", func(s *sequencer) {
		s.request("GET", "/early", true, "te", "gzip")
	}, "8.1.1: the request is malformed; a response may come before the reset"},
	{"a path that occurs twice", func(s *sequencer) {
		s.last += 2
		s.headers(s.last, true, ":method", "GET", ":scheme", "http", ":path", "/", ":path", "/")
	}, ""},
	{"no path", func(s *sequencer) { s.last += 2; s.headers(s.last, true, ":method", "GET", ":scheme", "http") }, ""},
	{"an unknown pseudo-header", func(s *sequencer) {
		s.last += 2
		s.headers(s.last, true, ":method", "GET", ":scheme", "http", ":path", "/", ":x", "y")
	}, ""},
	{"userinfo", func(s *sequencer) {
		s.last += 2
		s.headers(s.last, true, ":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a@h")
	}, ""},
	{"a length that is no number", func(s *sequencer) {
		s.request("POST", "/echo", false, "content-length", "x")
	}, "8.1.1: the request is malformed"},
	{"a body that is too long", func(s *sequencer) {
		s.request("POST", "/echo", false, "content-length", "1")
		s.WriteData(s.last, true, []byte("ab"))
	}, ""},
	{"a body that is too short", func(s *sequencer) {
		s.request("POST", "/echo", false, "content-length", "3")
		s.WriteData(s.last, true, []byte("ab"))
	}, "8.1.1: the request is malformed"},
	{"trailers without an end", func(s *sequencer) { s.headers(s.last, false, "sum", "1") }, ""},
	{"a pseudo-header in trailers", func(s *sequencer) { s.headers(s.last, true, ":path", "/") }, ""},
}
