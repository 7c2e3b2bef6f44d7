package informer_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/encodingtest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/persist"
	"github.com/listwatch/listwatch/store/memory"
)

type encodedFlag struct {
	listwatch.Metadata `json:"metadata"`
	On                 bool `json:"on"`
}

// An informer decodes any encoding with a Decode function. Without one it refuses the collection.
func TestInformerDecodesAnEncoding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flags := memory.New[encodedFlag]()
		testkit.Must(flags.Create(t.Context(), encodedFlag{Metadata: listwatch.Metadata{Name: "a"}, On: true}))(t)
		source := encodingtest.Source{Source: flags}
		err := (&informer.Informer[encodedFlag]{Source: source}).Run(t.Context())
		if !errors.Is(err, listwatch.Unsupported) || !strings.Contains(err.Error(), "Flag") {
			t.Errorf("without Decode: got %v, want Unsupported with the kind", err)
		}
		decode := func(o *listwatch.Object) (f encodedFlag, err error) {
			return f, json.Unmarshal(encodingtest.Flip(o.Data), &f)
		}
		file := persist.File{Path: filepath.Join(t.TempDir(), "copy")}
		values := &informer.Informer[encodedFlag]{Source: source, Decode: decode, Persist: file}
		objects := &informer.Informer[*listwatch.Object]{Source: source}
		ctx, stop := context.WithCancel(t.Context())
		var work sync.WaitGroup
		defer work.Wait()
		defer stop()
		work.Go(func() { _ = values.Run(ctx) })
		work.Go(func() { _ = objects.Run(ctx) })
		synctest.Wait()
		if f, ok := values.Get(listwatch.Key{Name: "a"}); !ok || !f.On {
			t.Errorf("got %+v, %t, want the flag", f, ok)
		}
		if o, ok := objects.Get(listwatch.Key{Name: "a"}); !ok || o.Data[0] == '{' {
			t.Errorf("got %+v, %t, want the encoded object", o, ok)
		}
	})
}

func TestDecodeHintsAtTheEncoding(t *testing.T) {
	_, err := listwatch.Decode[encodedFlag](encodingtest.Object(&listwatch.Object{Data: []byte(`{}`)}))
	if listwatch.CodeOf(err) != listwatch.Corrupt || !strings.Contains(err.Error(), "Encoding") {
		t.Errorf("got %v, want Corrupt with a hint at the encoding", err)
	}
}
