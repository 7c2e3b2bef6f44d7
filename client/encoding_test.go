package client

import (
	"errors"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/encodingtest"
)

func TestFramingsMustHaveOneEncoding(t *testing.T) {
	r := &Remote{URL: "http://example.com/things", Framings: []framing.Framer{encodingtest.Framing{}, framing.JSON{}}}
	_, err := r.List(t.Context(), listwatch.Query{})
	if !errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), "encodings") {
		t.Errorf("list: got %v, want Invalid", err)
	}
	if _, err = r.Watch(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("watch: got %v, want Invalid", err)
	}
}

func TestUnionNeedsJSON(t *testing.T) {
	u := NewUnion("http://example.com/watch", "/api/v1/nodes")
	u.Remote.Framings = []framing.Framer{encodingtest.Framing{}}
	if err := u.Run(t.Context()); !errors.Is(err, listwatch.Unsupported) {
		t.Errorf("got %v, want Unsupported", err)
	}
}
