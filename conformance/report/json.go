package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
)

// JSON writes r with all it has; [Read] reads it back.
func JSON(w io.Writer, r *conformance.Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// maxReport is how many bytes [Read] takes.
const maxReport = 256 << 20

// Read reads what [JSON] wrote. What is no report is an error of code Invalid.
func Read(in io.Reader) (*conformance.Report, error) {
	r := new(conformance.Report)
	data, err := io.ReadAll(io.LimitReader(in, maxReport+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxReport {
		return nil, invalid(fmt.Sprintf("it has more than %d bytes", maxReport), nil)
	}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, invalid("", err)
	}
	if r.Tool == "" || r.Started.IsZero() {
		return nil, invalid("it names neither a tool nor a time", nil)
	}
	return r, nil
}

func invalid(message string, err error) error {
	return &listwatch.Error{Code: listwatch.Invalid, Op: "read a report", Message: message, Err: err}
}
