package report

import (
	"encoding/json"
	"io"

	"github.com/listwatch/listwatch/conformance"
)

// JSON writes the complete report.
func JSON(w io.Writer, r *conformance.Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
