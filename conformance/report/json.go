package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
)

// JSON writes the complete report. [Read] reads it.
func JSON(w io.Writer, r *conformance.Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// maxReportBytes limits the input of [Read].
const maxReportBytes = 256 << 20

// Read reads a report that [JSON] wrote. Invalid input is an error of code Invalid.
func Read(in io.Reader) (*conformance.Report, error) {
	r := new(conformance.Report)
	data, err := io.ReadAll(io.LimitReader(in, maxReportBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxReportBytes {
		return nil, invalid(fmt.Sprintf("the report has more than %d bytes", maxReportBytes), nil)
	}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, invalid("", err)
	}
	if r.Tool == "" || r.Started.IsZero() {
		return nil, invalid("not a conformance report: the tool or the start time is missing", nil)
	}
	return r, nil
}

func invalid(message string, err error) error {
	return &listwatch.Error{Code: listwatch.Invalid, Op: "read a report", Message: message, Err: err}
}
