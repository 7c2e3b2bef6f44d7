package rawjson

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// indent writes doc to an Indenter in parts of n bytes, and returns the output.
func indent(doc []byte, n int) string {
	var out bytes.Buffer
	w := Indenter{W: &out}
	for len(doc) > 0 {
		part := doc[:min(n, len(doc))]
		w.Write(part)
		doc = doc[len(part):]
	}
	return out.String()
}

func TestIndenterLimitsTheIndent(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	if n := len(indent([]byte(deep), len(deep))); n > 100*len(deep) {
		t.Errorf("%d bytes became %d", len(deep), n)
	}
}

// An endless value shows that the Indenter does not collect what it has written.
func TestIndenterHoldsFewBytes(t *testing.T) {
	w := Indenter{W: io.Discard}
	w.Write([]byte("["))
	for range 1000 {
		w.Write([]byte(`{"a":[1,2,3]},`))
	}
	w.Write(bytes.Repeat([]byte(`{"a":[1,2,3]},`), 10_000))
	if n := cap(w.buf); n > 4*indentBuffer {
		t.Errorf("the buffer has %d bytes, want at most %d", n, 4*indentBuffer)
	}
}

func FuzzIndenter(f *testing.F) {
	f.Add([]byte(`{"a":[],"b":{},"c":[1,{"d":"x\"y\\"}],"e":"{[,:]}"}`+"\n"), 1)
	f.Add([]byte(" [ 1 , [ ] , { } ] "), 3)
	f.Fuzz(func(t *testing.T, doc []byte, n int) {
		if !json.Valid(doc) || bytes.Count(doc, []byte("{"))+bytes.Count(doc, []byte("[")) > maxIndent {
			return
		}
		doc = bytes.TrimLeft(doc, " \t\r\n") // json.Indent drops leading space
		var want bytes.Buffer
		if err := json.Indent(&want, doc, "", "  "); err != nil {
			t.Fatal(err)
		}
		if got := indent(doc, max(n, 1)); got != want.String() {
			t.Errorf("got %s, want %s", got, &want)
		}
	})
}
