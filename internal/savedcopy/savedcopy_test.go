package savedcopy

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
)

var objects = [][]byte{[]byte(`{"metadata":{"name":"a"}}`), []byte(`{"metadata":{"name":"b"},"n":1}`)}

// header returns the header of a copy of n objects.
func header(n int) Header {
	return Header{Selection: "a=b", State: listwatch.State{Version: 7, ID: "epoch.hash"}, Objects: n}
}

// read reads the copy at path.
func read(path string) (h Header, read [][]byte, err error) {
	h, err = Read(path, header(0), func(object []byte) error {
		read = append(read, object)
		return nil
	})
	return h, read, err
}

// lines yields the lines of a copy.
func lines(all [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, line := range all {
			if !yield(line, nil) {
				return
			}
		}
	}
}

// save writes objects to a new file.
func save(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "copy")
	if err := Write(path, header(len(objects)), lines(objects)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadReturnsWhatWasWritten(t *testing.T) {
	path := save(t)
	h, got, err := read(path)
	want := header(len(objects))
	want.Format = format
	if diff := cmp.Diff(want, h) + cmp.Diff(objects, got); err != nil || diff != "" {
		t.Errorf("got %v and\n%s", err, diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("got %v, %v, want a file that only its owner can read", info.Mode(), err)
	}
	if err := errors.Join(Remove(path), Remove(path)); err != nil {
		t.Error(err)
	}
	if _, _, err := read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Remove: got %v", err)
	}
}

func TestCopyOfSomethingElseIsNotUsed(t *testing.T) {
	path := save(t)
	for _, change := range []func(*Header){
		func(h *Header) { h.Selection = "" }, func(h *Header) { h.Representation = "as=Table" },
	} {
		want := header(0)
		change(&want)
		if _, err := Read(path, want, func([]byte) error { return nil }); !errors.Is(err, ErrUnusable) {
			t.Errorf("%+v: got %v, want ErrUnusable", want, err)
		}
	}
}

func TestEachFlippedByteAndEachCutIsNoticed(t *testing.T) {
	path := save(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if h, got, err := read(path); !errors.Is(err, ErrUnusable) || h.State.ID != "" {
			t.Errorf("%s: got %+v, %q, %v, want ErrUnusable", what, h, got, err)
		}
	}
	for i := range whole {
		for _, mask := range []byte{1, 0x20, 0x80, 0xFF} {
			damaged := slices.Clone(whole)
			damaged[i] ^= mask
			check(fmt.Sprintf("byte %d ^ %#x", i, mask), damaged)
		}
		check(fmt.Sprintf("cut at %d", i), whole[:i])
	}
	check("a longer file", append(whole, 'x'))
}

func TestFailedWriteKeepsTheOldCopy(t *testing.T) {
	path := save(t)
	for _, bad := range [][][]byte{{[]byte("{}\n{}"), nil}, {[]byte("{}")}, {nil, nil, nil}} {
		if err := Write(path, header(2), lines(bad)); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
	if _, got, err := read(path); err != nil || !cmp.Equal(got, objects) {
		t.Errorf("got %q, %v", got, err)
	}
	if files, _ := filepath.Glob(path + "*"); len(files) != 1 {
		t.Errorf("got %v, want no other file", files)
	}
}

// TestKillLeavesTheOldCopyOrTheNewOne kills processes that write copies one after another.
func TestKillLeavesTheOldCopyOrTheNewOne(t *testing.T) {
	if path := os.Getenv("LISTWATCH_TEST_COPY"); path != "" {
		for n := 0; ; n++ {
			many := slices.Repeat([][]byte{fmt.Appendf(nil, `{"n":%d}`, n)}, 20_000)
			if err := Write(path, header(len(many)), lines(many)); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				fmt.Println("written")
			}
		}
	}
	path := filepath.Join(t.TempDir(), "copy")
	for range 5 {
		p := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		p.Env = append(os.Environ(), "LISTWATCH_TEST_COPY="+path)
		out, err := p.StdoutPipe()
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // the first copy is complete
			t.Fatal(err)
		}
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait() // it was killed
		h, got, err := read(path)
		if err != nil || h.Objects != 20_000 || len(slices.CompactFunc(got, slices.Equal[[]byte])) != 1 {
			t.Fatalf("got %+v, %d objects, %v, want one whole copy", h, len(got), err)
		}
	}
}
