package watchserver_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// names shows the names of objects; the first event of a stream has a title, too.
type names struct{ titled bool }

func (n names) AppendObject(dst []byte, e listwatch.Event) []byte {
	return fmt.Appendf(dst, `{"title":%t,"name":%q}`, n.titled, e.Object.Key.Name)
}
func (n names) AfterFirst() transport.Representation { return names{} }
func (n names) DependsOnTime() bool                  { return false }
func (n names) AppendListHead(dst, metadata []byte) []byte {
	return append(append(append(dst, `{"metadata":`...), metadata...), `,"names":[`...)
}

func (n names) AppendItem(dst []byte, o *listwatch.Object) []byte {
	return fmt.Appendf(dst, "%q", o.Key.Name)
}

// offerNames offers as=Name for one object and as=Names for many. as=Rude is an error.
func offerNames(params map[string]string, list bool) (watchserver.ListRepresentation, error) {
	switch as := params["as"]; {
	case as == "Rude":
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "rude"}
	case as == "Name" && !list, as == "Names" && list:
		return names{titled: true}, nil
	}
	return nil, nil
}

// represented serves two flags, a and b, and returns the URL.
func represented(t *testing.T) string {
	t.Helper()
	flags := memory.New[Flag]()
	for _, name := range []string{"a", "b"} {
		if _, err := flags.Create(t.Context(), Flag{Metadata: listwatch.Metadata{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	server := &watchserver.Server{}
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.Serve(w, r, watchserver.Endpoint{Source: flags, Represent: offerNames})
	}))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		_ = server.Drain(t.Context()) // it is over, so watches are cut off
		hs.Close()
	})
	return hs.URL
}

func get(t *testing.T, url, header, value string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(header, value)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func TestTheRepresentationIsTheFirstThatTheClientLikesAndTheServerHas(t *testing.T) {
	url := represented(t)
	const plain, shaped = `"items":[{`, `"names":["a","b"]`
	for _, c := range []struct {
		accept, want string
		code         int
	}{
		{"", plain, 200},
		{"application/json;as=Names", shaped, 200},
		{"*/*;as=Names", shaped, 200},
		{"application/json;as=Names;charset=utf-8", shaped, 200},
		{"application/json;as=Nothing,application/json;as=Names, application/json", shaped, 200},
		{"application/vnd.kubernetes.protobuf;as=Names,application/json", plain, 200},
		{"application/vnd.kubernetes.protobuf;as=Names,application/json;as=Names", shaped, 200},
		{"application/json;as=Names;q=0.5,application/json", plain, 200},
		{"application/json;q=0.5,application/json;as=Names;q=0.6", shaped, 200},
		{"application/json,application/json;as=Names", plain, 200},
		{"*/*,application/json;as=Names", shaped, 200},
		{"application/json;as=Names;q=0,application/json;q=0.1", plain, 200},
		{"application/json;as=Nothing,*/*", plain, 200},
		{"application/json;as=Name", "NotAcceptable", 406},
		{"application/json;as=Names;q=0", "NotAcceptable", 406},
		{"application/json;as=Names;x=y", "NotAcceptable", 406},
		{"application/json;as=Rude,application/json", "rude", 400},
		{"application/json;as=", "value of a parameter", 400},
	} {
		res := get(t, url, "Accept", c.accept)
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != c.code || !strings.Contains(string(body), c.want) {
			t.Errorf("Accept %s: got %d %s %v, want %d …%s…", c.accept, res.StatusCode, body, err, c.code, c.want)
		}
		if !slices.Contains(res.Header.Values("Vary"), "Accept") && c.code == 200 {
			t.Errorf("Accept %s: no Vary", c.accept)
		}
	}
}

func TestOnlyTheFirstEventOfAWatchHasTheTitle(t *testing.T) {
	url := represented(t)
	for _, c := range []struct {
		accept, mediaType string
		want              []string
	}{
		{"application/json;as=Name;stream=watch,application/json", "application/json", []string{
			`{"type":"ADDED","object":{"title":true,"name":"a"}}`, `{"type":"ADDED","object":{"title":false,"name":"b"}}`,
		}},
		{"text/event-stream;as=Name", "text/event-stream", []string{
			"retry: 1000", "", "event: ADDED", `data: {"type":"ADDED","object":{"title":true,"name":"a"}}`, "",
			"event: ADDED", `data: {"type":"ADDED","object":{"title":false,"name":"b"}}`,
		}},
	} {
		for range 2 { // the second one gets the frames of the first
			res := get(t, url+"?watch=1", "Accept", c.accept)
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

func TestAWatchInNoKnownRepresentationIsRefused(t *testing.T) {
	url := represented(t) + "?watch=1"
	for accept, code := range map[string]int{
		"application/json;as=Names": http.StatusNotAcceptable, "application/json;as=Rude": http.StatusBadRequest, ";": http.StatusBadRequest,
	} {
		if got := get(t, url, "Accept", accept).StatusCode; got != code {
			t.Errorf("Accept %s: got %d, want %d", accept, got, code)
		}
	}
}

func TestLargeListsAreCompressed(t *testing.T) {
	flags := memory.New[Flag]()
	pad := strings.Repeat("x", 200)
	for i := range 300 {
		_, err := flags.Create(t.Context(), Flag{Metadata: listwatch.Metadata{Name: fmt.Sprintf("f%03d", i), Annotations: map[string]string{"pad": pad}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	hs := httptest.NewServer(&watchserver.Server{Source: flags})
	t.Cleanup(hs.Close)
	var plain string
	for _, encoding := range []string{"identity", "gzip"} {
		res := get(t, hs.URL, "Accept-Encoding", encoding)
		var body io.Reader = res.Body
		if encoding == "gzip" {
			z, err := gzip.NewReader(body)
			if err != nil || res.Header.Get("Content-Encoding") != "gzip" {
				t.Fatalf("got %v %v", res.Header, err)
			}
			body = z
		}
		data, err := io.ReadAll(body)
		if err != nil || !slices.Contains(res.Header.Values("Vary"), "Accept-Encoding") {
			t.Errorf("%s: %v %v", encoding, err, res.Header)
		}
		if plain != "" && string(data) != plain {
			t.Errorf("%s: got another list", encoding)
		}
		plain = string(data)
	}
}
