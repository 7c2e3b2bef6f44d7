package apihttp

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rest"
)

// prefersMinimal reports whether the client of a write does not need the object in the response
// (rfc7240#section-4.2). The first preference of the name return counts.
func prefersMinimal(r *http.Request) bool {
	if rest.IsRead(rest.VerbOf(r.Method, true, false)) {
		return false
	}
	for preference := range strings.SplitSeq(strings.Join(r.Header.Values("Prefer"), ","), ",") {
		preference, _, _ = strings.Cut(preference, ";") // parameters
		name, value, _ := strings.Cut(preference, "=")
		if strings.EqualFold(strings.TrimSpace(name), "return") {
			return strings.Trim(strings.TrimSpace(value), `"`) == "minimal"
		}
	}
	return false
}

// writeMinimal responds with status code and no body. Status 200 becomes 204. The ETag is the
// version of o, because there is no body that has it.
func writeMinimal(w http.ResponseWriter, r *http.Request, code int, o *listwatch.Object) {
	h := w.Header()
	if o.Version != 0 {
		h.Set("ETag", fmt.Sprintf(`"%d"`, o.Version))
	}
	h.Set("Preference-Applied", "return=minimal")
	h.Set("Cache-Control", "no-cache, private")
	if code == http.StatusOK {
		code = http.StatusNoContent
	} else {
		h.Set("Content-Length", "0")
	}
	if a := admittedOf(r); a != nil {
		a.answering()
	}
	w.WriteHeader(code)
}
