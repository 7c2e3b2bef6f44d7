package apihttp

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
)

func writeBody(t *testing.T, accept string, parts ...[]byte) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", accept)
	w := httptest.NewRecorder()
	WriteBody(w, r, http.StatusAccepted, parts...)
	res := w.Result()
	if res.StatusCode != http.StatusAccepted || res.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("got status %d and Vary %q, want 202 and Accept-Encoding", res.StatusCode, res.Header.Get("Vary"))
	}
	return res
}

func TestLargeBodiesAreCompressed(t *testing.T) {
	half := bytes.Repeat([]byte("listwatch "), compressAbove/16)
	for range 2 { // the second response uses a pooled compressor
		res := writeBody(t, "gzip", half, half)
		if res.Header.Get("Content-Encoding") != "gzip" || res.Header.Get("Content-Length") != "" {
			t.Fatalf("got headers %v, want gzip and no length", res.Header)
		}
		z, err := gzip.NewReader(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, append(half[:len(half):len(half)], half...)) {
			t.Errorf("got %d bytes, %v; want both parts", len(got), err)
		}
	}
	res := writeBody(t, "identity", half, half)
	if got, _ := io.ReadAll(res.Body); len(got) != 2*len(half) || res.Header.Get("Content-Encoding") != "" {
		t.Errorf("got %d bytes, %v", len(got), res.Header)
	}
}

// A deadlineRecorder records the write deadline at each write.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	timeouts []time.Duration
}

func (d *deadlineRecorder) SetWriteDeadline(deadline time.Time) error {
	d.timeouts = append(d.timeouts, time.Until(deadline))
	return nil
}

func TestAllBodiesHaveTheWriteTimeout(t *testing.T) {
	object := &listwatch.Object{Version: 1, Data: []byte(`{"metadata":{"resourceVersion":"1"}}`)}
	page := listwatch.Page{Items: []*listwatch.Object{object}, Version: 1}
	for _, timeout := range []time.Duration{time.Second, time.Hour, -1} {
		g := new(recorder).gate()
		g.Limits = func() Limits { return Limits{WriteTimeout: timeout} }
		h := g.Handler(HandlerFunc(func(w http.ResponseWriter, r *http.Request, a *Admitted) error {
			form, err := a.ChooseBody(false, listwatch.Description{})
			if err == nil {
				form.WriteObject(w, r, http.StatusOK, object)
				_, err = WriteList(w, r, ListBody{Page: page, Form: form})
			}
			return err
		}))
		want := []time.Duration{timeout, timeout}
		if timeout < 0 {
			want = nil
		}
		synctest.Test(t, func(t *testing.T) {
			w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
			h.ServeHTTP(w, request("GET", "/", "User", "ada"))
			if !slices.Equal(w.timeouts, want) {
				t.Errorf("got write timeouts %v, want %v", w.timeouts, want)
			}
		})
	}
}

func TestEqualListsAreCompressedOnce(t *testing.T) {
	g := new(recorder).gate()
	g.Limits = func() Limits { return Limits{Memory: 64 << 20} }
	var page listwatch.Page
	for i := range 1000 {
		data := fmt.Appendf(nil, `{"metadata":{"name":"%d"},"data":%q}`, i, strings.Repeat(strconv.Itoa(i*i), 100))
		page.Items = append(page.Items, &listwatch.Object{Version: 1, Data: data})
	}
	h := g.Handler(HandlerFunc(func(w http.ResponseWriter, r *http.Request, a *Admitted) error {
		form, err := a.ChooseBody(true, listwatch.Description{})
		if err == nil {
			_, err = WriteList(w, r, ListBody{Page: page, Form: form})
		}
		return err
	}))
	list := func(coding string) []byte {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request("GET", "/", "User", "ada", "Accept-Encoding", coding))
		if coding == "identity" {
			return w.Body.Bytes()
		}
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	for i, version := range []listwatch.Version{1, 1, 2} {
		page.Version = version
		before := g.BlockCache().Used()
		if got, want := list("gzip"), list("identity"); !bytes.Equal(got, want) {
			t.Errorf("list %d: got %d bytes, want the %d bytes of the JSON", i, len(got), len(want))
		}
		used, more := g.BlockCache().Used(), g.BlockCache().Used()-before
		if i == 0 && more == 0 || i == 1 && more != 0 || i == 2 && more > used/3 {
			t.Errorf("list %d of version %d added %d bytes to the cache of %d", i, version, more, used)
		}
	}
	if _, limit := g.Usage(); limit.RequestBytes != 64<<20-g.BlockCache().Used() {
		t.Errorf("requests may take %d bytes while the cache has %d", limit.RequestBytes, g.BlockCache().Used())
	}
}

func TestSmallBodiesAreNotCompressed(t *testing.T) {
	body := strings.Repeat("x", compressAbove)
	res := writeBody(t, "gzip", []byte(body))
	got, _ := io.ReadAll(res.Body)
	if string(got) != body || res.Header.Get("Content-Encoding") != "" || res.ContentLength != compressAbove {
		t.Errorf("got %d bytes, length %d, %v, want %d without a coding",
			len(got), res.ContentLength, res.Header, compressAbove)
	}
}
