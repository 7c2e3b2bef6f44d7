package checker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/listwatch/listwatch"
)

// FileExtension is the suffix of history files.
const FileExtension = ".history.gz"

// WriteTo writes h as a history file; see [ReadHistory].
func (h *History) WriteTo(w io.Writer) (int64, error) {
	count := &countingWriter{w: w}
	out, err := NewHistoryWriter(count, h.Meta)
	if err != nil {
		return count.n, err
	}
	err = h.each(out.Write)
	return count.n, errors.Join(err, out.Close())
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// Save writes h to a new file in dir, and returns its path. It creates dir if necessary.
func (h *History) Save(dir, name string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fileError("write", err)
	}
	path = filepath.Join(dir, name+FileExtension)
	f, err := os.Create(path)
	if err != nil {
		return "", fileError("write", err)
	}
	_, err = h.WriteTo(f)
	return path, errors.Join(err, f.Close())
}

// ReadHistory reads a whole history file. It needs several hundred bytes of memory per
// line.
func ReadHistory(r io.Reader) (*History, error) {
	in, err := NewHistoryReader(r)
	if err != nil {
		return nil, err
	}
	h := &History{Meta: in.Meta()}
	for {
		e, err := in.Read()
		if errors.Is(err, io.EOF) {
			return h, nil
		}
		if err == nil {
			err = h.add(e)
		}
		if err != nil {
			return nil, err
		}
	}
}

// LoadHistory reads the file at path.
func LoadHistory(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError("read", err)
	}
	h, err := ReadHistory(f)
	return h, errors.Join(err, f.Close())
}

func corruptEntry(message string) error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "read a history", Message: message}
}

// A FileReport is the result of checking one file.
type FileReport struct {
	Path   string
	Report *Report
	Err    error // why the file could not be checked
}

// CheckDir checks every file in dir with the suffix [FileExtension], in the order of their
// names. It returns an error if it cannot read dir, or one of code NotFound if dir has no
// such file.
func CheckDir(dir string, o *Options) ([]FileReport, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fileError("read", err)
	}
	var all []FileReport
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), FileExtension) {
			continue
		}
		c := FileReport{Path: filepath.Join(dir, f.Name())}
		var h *History
		if h, c.Err = LoadHistory(c.Path); c.Err == nil {
			c.Report, c.Err = Check(h, o)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, &listwatch.Error{
			Code: listwatch.NotFound, Op: "check",
			Message: fmt.Sprintf("the directory %[2]s contains no file *%[1]s", FileExtension, dir),
		}
	}
	return all, nil
}
