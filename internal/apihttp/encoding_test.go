package apihttp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/encodingtest"
)

var things = listwatch.Description{Kind: "Thing", APIVersion: "v1", Encoding: encodingtest.Encoding{}}

// respond passes a request through a gate to serve.
func respond(serve HandlerFunc, fields ...string) *httptest.ResponseRecorder {
	g := new(recorder).gate()
	g.Limits = func() Limits { return Limits{} }
	w := httptest.NewRecorder()
	g.Handler(serve).ServeHTTP(w, request("GET", "/", append(fields, "User", "ada")...))
	return w
}

func TestEncodedBodyHasNothingAdded(t *testing.T) {
	o := encodingtest.Object(&listwatch.Object{Version: 1, Data: []byte(`{"metadata":{"resourceVersion":"1"}}`)})
	get := func(w http.ResponseWriter, r *http.Request, a *Admitted) error {
		form, err := a.ChooseBody(false, things)
		if err == nil {
			form.WriteObject(w, r, http.StatusOK, o)
		}
		return err
	}
	mediaType := encodingtest.Encoding{}.MediaType()
	for _, accept := range []string{"", "*/*", mediaType, "application/json;q=0.5," + mediaType} {
		w := respond(get, "Accept", accept)
		if w.Body.String() != string(o.Data) || w.Header().Get("Content-Type") != mediaType {
			t.Errorf("Accept %q: got %q of type %s", accept, w.Body, w.Header().Get("Content-Type"))
		}
	}
	if w := respond(get, "Accept", "application/json"); w.Code != http.StatusNotAcceptable ||
		!strings.Contains(w.Body.String(), mediaType) {
		t.Errorf("got %d: %s, want 406 with the available type", w.Code, w.Body)
	}
}

// A failingEncoding fails in a list after the given number of bytes.
type failingEncoding struct {
	encodingtest.Encoding
	after int
}

func (f failingEncoding) WriteList(
	w io.Writer, _ framing.List, _ func([]byte, *listwatch.Object) []byte,
) error {
	if _, err := w.Write(make([]byte, f.after)); err != nil {
		return err
	}
	return &listwatch.Error{Code: listwatch.Corrupt, Message: "an item is malformed"}
}

// A list that fails in its middle must not look like a whole one.
func TestFailedEncodedListIsAborted(t *testing.T) {
	list := func(after int) (code int, aborted bool) {
		d := things
		d.Encoding = failingEncoding{after: after}
		defer func() { aborted = errors.Is(asError(recover()), http.ErrAbortHandler) }()
		w := respond(func(w http.ResponseWriter, r *http.Request, a *Admitted) error {
			form, err := a.ChooseBody(true, d)
			if err == nil {
				_, err = WriteList(w, r, ListBody{Description: d, Form: form})
			}
			return err
		})
		return w.Code, false
	}
	if code, aborted := list(100); code != http.StatusInternalServerError || aborted {
		t.Errorf("a list that fails early: got %d, aborted %t, want 500", code, aborted)
	}
	if _, aborted := list(compressAbove + 1); !aborted {
		t.Error("a list that fails late was not aborted")
	}
}

func asError(v any) error {
	err, _ := v.(error)
	return err
}

// An encoding without lists can only be watched.
func TestEncodingWithoutListsRefusesBodies(t *testing.T) {
	d := things
	d.Encoding = struct{ listwatch.Encoding }{encodingtest.Encoding{}}
	w := respond(func(_ http.ResponseWriter, _ *http.Request, a *Admitted) error {
		_, err := a.ChooseBody(true, d)
		return err
	})
	if w.Code < http.StatusBadRequest || !strings.Contains(w.Body.String(), "Thing.v1") {
		t.Errorf("got %d: %s, want a refusal that names the collection", w.Code, w.Body)
	}
}
