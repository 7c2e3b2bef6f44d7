package checker

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
)

func pack(t testing.TB, lines string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, lines); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const header = `{"header":{"format":"listwatch.history","formatVersion":1}}` + "\n"

func TestInvalidFilesAreRefused(t *testing.T) {
	for name, lines := range map[string]string{
		"empty file":            "",
		"not JSON":              "x\n",
		"no header":             `{"write":{"version":1,"key":"a"}}` + "\n",
		"another format":        `{"header":{"format":"x","formatVersion":1}}` + "\n",
		"truncated line":        header + `{"write":`,
		"event without session": header + `{"event":{"session":0,"type":"ADDED","version":1}}` + "\n",
		"negative session":      header + `{"end":{"session":-1}}` + "\n",
		"session out of order":  header + `{"session":{"number":3,"watcher":"w"}}` + "\n",
		"unknown event type": header + `{"session":{"number":0,"watcher":"w"}}` + "\n" +
			`{"event":{"session":0,"type":"ERROR","version":1}}` + "\n",
		"invalid fingerprint": header + `{"write":{"version":1,"key":"a","after":{"fingerprint":"12"}}}` + "\n",
	} {
		if _, err := ReadHistory(bytes.NewReader(pack(t, lines))); !errors.Is(err, listwatch.Corrupt) {
			t.Errorf("%s: got %v, want Corrupt", name, err)
		}
	}
	_, err := ReadHistory(bytes.NewReader(pack(t, `{"header":{"format":"listwatch.history","formatVersion":2}}`+"\n")))
	if !errors.Is(err, listwatch.Unsupported) {
		t.Errorf("newer version: got %v, want Unsupported", err)
	}
	if _, err := ReadHistory(bytes.NewReader([]byte("not gzip"))); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("not gzip: got %v, want Corrupt", err)
	}
}

func TestTruncatedFileIsRefused(t *testing.T) {
	var file bytes.Buffer
	if _, err := cachedSimulation(0).WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 5, file.Len() / 2, file.Len() - 9, file.Len() - 1} {
		if _, err := ReadHistory(bytes.NewReader(file.Bytes()[:n])); !errors.Is(err, listwatch.Corrupt) {
			t.Errorf("the first %d of %d bytes: got %v, want Corrupt", n, file.Len(), err)
		}
	}
}

func TestCheckDir(t *testing.T) {
	dir := t.TempDir()
	if _, err := CheckDir(dir, nil); !errors.Is(err, listwatch.NotFound) {
		t.Errorf("empty directory: got %v, want NotFound", err)
	}
	bad := clone(cachedSimulation(1))
	bad.InformerStates[0].Version += farVersion
	bad.InformerStates[0].Items = nil
	for name, h := range map[string]*History{"a": cachedSimulation(0), "b": bad} {
		if _, err := h.Save(dir, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "c"+FileExtension), []byte("not a history"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := CheckDir(dir, nil)
	if err != nil || len(all) != 3 {
		t.Fatalf("got %d files and %v, want 3", len(all), err)
	}
	if all[0].Err != nil || all[0].Report.Err() != nil {
		t.Errorf("a: got %v, %v, want no errors", all[0].Err, all[0].Report.Err())
	}
	if all[1].Err != nil {
		t.Fatalf("b: got %v, want a report", all[1].Err)
	}
	if all[1].Report.Err() == nil {
		t.Error("b: got no violation")
	}
	if all[2].Err == nil || all[2].Report != nil {
		t.Errorf("c: got %v, %v, want only an error", all[2].Report, all[2].Err)
	}
}

// A history that can be read must survive writing and reading it again. No input may crash
// the reader or the checker.
func FuzzReadHistory(f *testing.F) {
	var file bytes.Buffer
	if _, err := simulate(0, 20).WriteTo(&file); err != nil {
		f.Fatal(err)
	}
	z, err := gzip.NewReader(&file)
	if err != nil {
		f.Fatal(err)
	}
	lines, err := io.ReadAll(z)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(lines)
	f.Add([]byte(header +
		`{"list":{"watcher":"w","request":{"version":3},"version":3,"items":[{"key":"a","version":2}],"more":true}}` +
		"\n" +
		`{"session":{"number":0,"watcher":"w","request":{"version":3}}}` + "\n" +
		`{"event":{"session":0,"type":"BOOKMARK","version":9}}` + "\n"))
	f.Add([]byte(header + `{"write":{"version":18446744073709551615,"key":"a/b","after":{}}}` + "\n" +
		`{"heal":{"at":1,"version":1}}` + "\n"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		h, err := ReadHistory(bytes.NewReader(pack(t, string(lines))))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if _, err := h.WriteTo(&again); err != nil {
			return // the reader accepts some values that the writer refuses
		}
		same, err := ReadHistory(&again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, same); diff != "" {
			t.Fatalf("the history after writing and reading it (-want +got):\n%s", diff)
		}
		if r, err := Check(h, nil); err == nil {
			_ = r.Err()
		}
	})
}
