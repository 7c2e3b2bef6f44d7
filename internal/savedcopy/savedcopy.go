// Package savedcopy keeps the objects that a client has received in a file. After a restart, the
// client requests only the difference to this copy.
//
// The file is a header on one line, the JSON of each object on one line, and a checksum of all of
// that. Objects and header are one file, so a header never claims a version that its objects do
// not have. A file that is incomplete or damaged, or that belongs to another collection, is not
// used: the client then requests the whole state.
package savedcopy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/atomicfile"
)

// A Header describes the objects of a copy.
type Header struct {
	Format int // of the file
	// Selection and Representation are the selectors and the form of the objects. A client uses
	// only a copy in which they equal its own.
	Selection, Representation string
	// State is the state of the server at the end of the copy. Its ID also identifies the server.
	State   listwatch.State
	Objects int // the number of lines
	// Floor is the version of the state at the start of the copy, if the copy continues with the
	// changes up to State.
	Floor       listwatch.Version     `json:",omitzero"`
	Description listwatch.Description `json:",omitzero"` // of the collection, for a relay
}

// format is the current [Header].Format. It changes when older programs could misread a file.
const format = 1

// ErrUnusable is the error for a file that is damaged or belongs to something else.
var ErrUnusable = errors.New("the saved copy cannot be used")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write replaces the copy at path. h.Format is ignored. objects yields h.Objects objects, each as
// JSON without line breaks, or an error.
func Write(path string, h Header, objects iter.Seq2[[]byte, error]) error {
	h.Format = format
	header, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, func(w *os.File) error {
		out := bufio.NewWriterSize(w, 1<<16)
		sum := crc32.New(castagnoli)
		both := io.MultiWriter(out, sum)
		_, err := both.Write(append(header, '\n'))
		for object, failure := range objects {
			if err = errors.Join(err, failure); err != nil {
				return err
			}
			if bytes.IndexByte(object, '\n') >= 0 {
				return errors.New("an object contains a line break")
			}
			if _, err = both.Write(object); err == nil {
				_, err = both.Write([]byte{'\n'})
			}
			h.Objects--
		}
		if h.Objects != 0 {
			return fmt.Errorf("there are %d objects fewer than announced", h.Objects)
		}
		fmt.Fprintf(out, "crc32c %08x\n", sum.Sum32())
		return errors.Join(err, out.Flush())
	})
}

// Read reads the copy at path and calls each with the JSON of each object. The caller must not use
// the objects if Read returns an error: [fs.ErrNotExist] if there is no copy, and ErrUnusable if
// the copy is damaged or has another Selection or Representation than want.
func Read(path string, want Header, each func(object []byte) error) (Header, error) {
	f, err := os.Open(path)
	if err != nil {
		return Header{}, err
	}
	defer f.Close()
	r := reader{in: bufio.NewReaderSize(f, 1<<16)}
	line, err := r.line()
	if err != nil {
		return Header{}, err
	}
	var h Header
	if err := json.Unmarshal(line, &h); err != nil {
		return Header{}, unusable("header: %w", err)
	}
	if h.Format != format {
		return Header{}, unusable("format %d, want %d", h.Format, format)
	}
	if h.Selection != want.Selection || h.Representation != want.Representation {
		return Header{}, unusable("it is a copy of %q in the form %q, want %q in the form %q",
			h.Selection, h.Representation, want.Selection, want.Representation)
	}
	for range h.Objects {
		object, err := r.line()
		if err != nil {
			return Header{}, err
		}
		if err := each(object); err != nil {
			return Header{}, err
		}
	}
	if err := r.end(); err != nil {
		return Header{}, err
	}
	return h, nil
}

func unusable(reason string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnusable, fmt.Errorf(reason, args...))
}

// A reader reads the lines of a copy and computes their checksum.
type reader struct {
	in  *bufio.Reader
	sum uint32
}

// line returns the next line, which the caller may keep.
func (r *reader) line() ([]byte, error) {
	line, err := r.in.ReadBytes('\n')
	switch {
	case err == io.EOF:
		return nil, unusable("it is incomplete")
	case err != nil:
		return nil, err
	}
	r.sum = crc32.Update(r.sum, castagnoli, line)
	return line[: len(line)-1 : len(line)-1], nil
}

// end checks the checksum, which must be the end of the file.
func (r *reader) end() error {
	want := fmt.Sprintf("crc32c %08x\n", r.sum)
	got, err := io.ReadAll(io.LimitReader(r.in, int64(len(want)+1)))
	if err == nil && string(got) != want {
		err = unusable("the checksum is wrong")
	}
	return err
}

// Remove deletes the copy at path, because its owner may no longer read the collection. It is no
// error if there is none.
func Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
