package watchserver_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// A nameRepresentation represents an object by its name. titled is true for the first event
// of a watch, which also has a title.
type nameRepresentation struct{ titled bool }

func (n nameRepresentation) AppendObject(dst []byte, e listwatch.Event) []byte {
	return fmt.Appendf(dst, `{"title":%t,"name":%q}`, n.titled, e.Object.Key.Name)
}
func (n nameRepresentation) AfterFirst() transport.Representation { return nameRepresentation{} }
func (n nameRepresentation) DependsOnTime() bool                  { return false }
func (n nameRepresentation) ListType(listwatch.Description) (apiVersion, kind string) {
	return "v1", "Names"
}

func (n nameRepresentation) AppendListHead(dst []byte, _ listwatch.Description, metadata []byte) []byte {
	return append(append(append(dst, `{"metadata":`...), metadata...), `,"names":[`...)
}

func (n nameRepresentation) AppendItem(dst []byte, o *listwatch.Object) []byte {
	return fmt.Appendf(dst, "%q", o.Key.Name)
}

// offerNames offers as=Name for single objects and as=Names for lists. For as=Invalid it
// returns an error.
func offerNames(params map[string]string, list bool) (apihttp.ListRepresentation, error) {
	switch as := params["as"]; {
	case as == "Invalid":
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "no such name"}
	case as == "Name" && !list, as == "Names" && list:
		return nameRepresentation{titled: true}, nil
	}
	return nil, nil
}

// serveNames serves a collection of two Flag objects, a and b, with the representations that
// offerNames offers. It returns the URL.
func serveNames(t *testing.T) string {
	t.Helper()
	flags := memory.New[Flag]()
	for _, name := range []string{"a", "b"} {
		if _, err := flags.Create(t.Context(), Flag{Metadata: listwatch.Metadata{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	var server *watchserver.Server
	return servertest.Start(t, nil, servertest.Options{
		Sockets:   true,
		Configure: func(ws *watchserver.Server) { server = ws },
		Wrap: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				serveAs(server, offerNames, watchserver.Endpoint{Source: flags}).ServeHTTP(w, r)
			})
		},
	}).URL("/")
}

// serveAs returns a handler that serves e with the representations that offer returns.
func serveAs(server *watchserver.Server, offer apihttp.RepresentationFunc, e watchserver.Endpoint) http.Handler {
	return server.Gate(apihttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
		a.Represent = offer
		server.Serve(w, r, e)
		return nil
	}))
}

func TestAcceptSelectsTheRepresentation(t *testing.T) {
	url := serveNames(t)
	const objects, names = `"items":[{`, `"names":["a","b"]`
	for _, c := range []struct {
		accept, want string
		code         int
	}{
		{"", objects, 200},
		{"application/json;as=Names", names, 200},
		{"*/*;as=Names", names, 200},
		{"application/json;as=Names;charset=utf-8", names, 200},
		{"application/json;as=Nothing,application/json;as=Names, application/json", names, 200},
		{"application/vnd.kubernetes.protobuf;as=Names,application/json", objects, 200},
		{"application/vnd.kubernetes.protobuf;as=Names,application/json;as=Names", names, 200},
		{"application/json;as=Names;q=0.5,application/json", objects, 200},
		{"application/json;q=0.5,application/json;as=Names;q=0.6", names, 200},
		{"application/json,application/json;as=Names", objects, 200},
		{"*/*,application/json;as=Names", names, 200},
		{"application/json;as=Names;q=0,application/json;q=0.1", objects, 200},
		{"application/json;as=Nothing,*/*", objects, 200},
		{"application/json;as=Name", "NotAcceptable", 406},
		{"application/json;as=Names;q=0", "NotAcceptable", 406},
		{"application/json;as=Names;x=y", names, 200},
		{"application/json;x=y", objects, 200},
		{"application/json;as=Invalid,application/json", "no such name", 400},
		{"application/json;as=", "value of a parameter", 406},
	} {
		res := testkit.Get(t, url, "Accept", c.accept)
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != c.code || !strings.Contains(string(body), c.want) {
			t.Errorf("Accept %s: got %d %s %v, want %d and a body with %s", c.accept, res.StatusCode, body, err,
				c.code, c.want)
		}
		if !slices.Contains(res.Header.Values("Vary"), "Accept") && c.code == 200 {
			t.Errorf("Accept %s: got no Vary: Accept", c.accept)
		}
	}
}

func TestRepresentationKnowsTheFirstEvent(t *testing.T) {
	url := serveNames(t)
	for _, c := range []struct {
		accept, mediaType string
		want              []string
	}{
		{"application/json;as=Name;stream=watch,application/json", "application/json", []string{
			`{"type":"ADDED","object":{"title":true,"name":"a"}}`,
			`{"type":"ADDED","object":{"title":false,"name":"b"}}`,
		}},
		{"text/event-stream;as=Name", "text/event-stream", []string{
			"retry: 1000", "", "event: ADDED", `data: {"type":"ADDED","object":{"title":true,"name":"a"}}`, "",
			"event: ADDED", `data: {"type":"ADDED","object":{"title":false,"name":"b"}}`,
		}},
	} {
		for range 2 { // the second watch receives the frames cached for the first
			res := testkit.Get(t, url+"?watch=1", "Accept", c.accept)
			if got := res.Header.Get("Content-Type"); got != c.mediaType {
				t.Errorf("%s: got Content-Type %s", c.accept, got)
			}
			lines := bufio.NewScanner(res.Body)
			for _, want := range c.want {
				if lines.Scan(); lines.Text() != want {
					t.Errorf("%s: got %s %v, want %s", c.accept, lines.Text(), lines.Err(), want)
				}
			}
			res.Body.Close()
		}
	}
}

func TestAnUnknownRepresentationIsRefused(t *testing.T) {
	url := serveNames(t) + "?watch=1"
	for accept, code := range map[string]int{
		"application/json;as=Names": http.StatusNotAcceptable, "application/json;as=Invalid": http.StatusBadRequest,
		";": http.StatusNotAcceptable,
	} {
		if got := testkit.Get(t, url, "Accept", accept).StatusCode; got != code {
			t.Errorf("Accept %s: got %d, want %d", accept, got, code)
		}
	}
}

func TestWebSocketSkipsFramingsWithoutMessages(t *testing.T) {
	url := serveNames(t) + "?watch=1"
	for accept, want := range map[string]string{
		"text/event-stream;as=Name,application/json":                                `{"type":"ADDED","object":{"kind":`,
		"text/event-stream;as=Name,application/json;as=Name;q=0.5":                  `{"type":"ADDED","object":{"title":true`,
		"application/json-seq;drop=metadata.managedFields,application/json;as=Name": `{"type":"ADDED","object":{"title":true`,
	} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		r.Header = http.Header{
			"Accept": {accept}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"},
			"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="},
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, 4+len(want)) // the header of a frame has two or four bytes
		n, _ := io.ReadFull(res.Body, frame)
		res.Body.Close()
		if res.StatusCode != http.StatusSwitchingProtocols || !strings.Contains(string(frame[:n]), want) {
			t.Errorf("Accept %s: got %d %q, want 101 %s", accept, res.StatusCode, frame[:n], want)
		}
	}
}

func TestLargeListsAreCompressed(t *testing.T) {
	flags := memory.New[Flag]()
	pad := strings.Repeat("x", 200)
	for i := range 300 {
		_, err := flags.Create(t.Context(),
			Flag{Metadata: listwatch.Metadata{
				Name:        fmt.Sprintf("f%03d", i),
				Annotations: map[string]string{"pad": pad},
			}})
		if err != nil {
			t.Fatal(err)
		}
	}
	server := servertest.Start(t, flags, servertest.Options{Sockets: true})
	var plain string
	for _, encoding := range []string{"identity", "gzip"} {
		res := testkit.Get(t, server.URL("/"), "Accept-Encoding", encoding)
		var body io.Reader = res.Body
		if encoding == "gzip" {
			z, err := gzip.NewReader(body)
			if err != nil || res.Header.Get("Content-Encoding") != "gzip" {
				t.Fatalf("got headers %v, %v; want gzip", res.Header, err)
			}
			body = z
		}
		data, err := io.ReadAll(body)
		if err != nil || !slices.Contains(res.Header.Values("Vary"), "Accept-Encoding") {
			t.Errorf("%s: got %v and headers %v, want Vary: Accept-Encoding", encoding, err, res.Header)
		}
		if plain != "" && string(data) != plain {
			t.Errorf("%s: got a different list", encoding)
		}
		plain = string(data)
	}
}
