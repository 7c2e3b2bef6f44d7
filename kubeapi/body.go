package kubeapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/kubeapi/internal/patch"
	"github.com/listwatch/listwatch/kubeapi/internal/yamlbody"
	"github.com/listwatch/listwatch/kubeapi/protobody"
	"github.com/listwatch/listwatch/store"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readObject reads the body of a write and converts it to JSON. The Content-Type must be JSON,
// YAML, Kubernetes' Protocol Buffers or CBOR. The caller must call end as readBody requires.
func (h *Handler) readObject(
	w http.ResponseWriter, r *http.Request, a *apihttp.Admitted,
) (object []byte, end func(), err error) {
	data, end, err := h.readBody(w, r, a)
	if err != nil || len(data) == 0 {
		return nil, end, err
	}
	mediaType, err := bodyMediaType(r.Header.Get("Content-Type"))
	if err == nil {
		object, err = h.toJSON(r.Context(), a, mediaType, data)
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return object, end, nil
}

// toJSON converts a body of the given media type to JSON.
func (h *Handler) toJSON(
	ctx context.Context, a *apihttp.Admitted, mediaType string, data []byte,
) (out []byte, err error) {
	limit := h.bodyBytes()
	if limit <= 0 {
		// Limit the JSON even if bodies are unlimited, because a small body can expand to
		// gigabytes.
		limit = max(DefaultMaxBodyBytes, 4*int64(len(data)))
	}
	switch mediaType {
	case yamlType:
		out, err = h.yamlToJSON(ctx, data, limit)
	case protobody.MediaType:
		out, err = protobody.ToJSON(data, limit)
	case cborType:
		out, err = framing.CBORToJSON(data, int(min(limit, math.MaxInt)))
	default:
		return data, nil
	}
	if errors.Is(err, protobody.ErrTooLarge) || errors.Is(err, framing.ErrTooLarge) {
		return nil, apihttp.BodyTooLarge(limit)
	}
	if err != nil {
		return nil, err
	}
	return out, a.GrowBody(len(out) - len(data))
}

// yamlToJSON converts a YAML body to JSON. It returns an error if the JSON would be larger than
// about limit bytes.
func (h *Handler) yamlToJSON(ctx context.Context, data []byte, limit int64) ([]byte, error) {
	yamlLimit := cmp.Or(h.MaxYAMLBytes, DefaultMaxYAMLBytes)
	out, err := yamlbody.ToJSON(ctx, data, yamlbody.Limits{JSON: limit, YAML: yamlLimit})
	if errors.Is(err, yamlbody.ErrTooLarge) {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusRequestEntityTooLarge, Reason: "RequestEntityTooLarge",
			Message: fmt.Sprintf("the YAML body has %d bytes, and the limit is %d: send it as JSON", len(data),
				yamlLimit),
		}
	}
	return out, err
}

// bodyBytes returns the maximum size of a body. A negative value means no limit.
func (h *Handler) bodyBytes() int64 { return cmp.Or(h.MaxBodyBytes, DefaultMaxBodyBytes) }

// readBody reads the body of a write and enforces the size limit. For a large body, it then waits
// for a turn to process it. Unless readBody returns an error, the caller must call end after it has
// processed the body and before it writes to the store.
func (h *Handler) readBody(
	w http.ResponseWriter, r *http.Request, a *apihttp.Admitted,
) (data []byte, end func(), err error) {
	if data, err = a.ReadBody(w, r, h.bodyBytes()); err != nil {
		return nil, nil, err
	}
	if end, err = budget.BeginTurn(r.Context(), len(data)); err != nil {
		return nil, nil, err
	}
	return data, end, nil
}

const (
	jsonType = "application/json"
	yamlType = "application/yaml"
	cborType = "application/cbor"
)

// bodyMediaType returns the media type of a body of the given Content-Type: JSON, YAML,
// Protocol Buffers or CBOR. It returns JSON for bodies without a meaningful type: no
// Content-Type at all, or the type that curl -d always sends. A web page of another origin can
// send such a body without a preflight request, but the gate has already rejected such requests.
func bodyMediaType(contentType string) (string, error) {
	if contentType == "" {
		return jsonType, nil
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
	case mediaType == jsonType, mediaType == "application/x-www-form-urlencoded":
		return jsonType, nil
	case mediaType == yamlType, mediaType == protobody.MediaType, mediaType == cborType:
		return mediaType, nil
	}
	return "", &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
		Message: fmt.Sprintf(
			"the body of the request was in an unknown format (%s) - accepted media types include: application/json, application/yaml, %s, %s",
			contentType, protobody.MediaType, cborType),
	}
}

// maxWarnings limits the number of warnings about one body.
const maxWarnings = 10

// checkFields returns an error if outOfRange is not empty. It is a number in the body beyond the
// range of float64. kube-apiserver rejects it too, because a client that decodes numbers into
// float64 could decode neither the object nor a list with it. A stored object may already have such
// a number, and keeps it.
//
// checkFields also reports the duplicate members of the body, of which the last one counts. If
// validation is Warn, it adds a warning for each to the header of w. If validation is Strict, it
// returns the error of reject (Kubernetes API concepts, "Field validation").
func checkFields(w http.ResponseWriter, validation, outOfRange string, duplicates []string,
	reject func(problems string) error,
) error {
	if outOfRange != "" {
		return &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf(
				"the number %.40s is beyond the range of 64-bit floating point: use a smaller number or a string",
				outOfRange),
		}
	}
	if validation == metav1.FieldValidationIgnore {
		return nil
	}
	return report(w, validation, fieldWarnings(duplicates), reject)
}

// report rejects a body with the given problems if validation is Strict, and adds warnings to the
// header of w if it is Warn.
func report(w http.ResponseWriter, validation string, problems []string, reject func(problems string) error) error {
	switch {
	case len(problems) == 0 || validation == metav1.FieldValidationIgnore:
		return nil
	case validation == metav1.FieldValidationStrict:
		return reject("strict decoding error: " + strings.Join(problems, ", "))
	}
	for _, text := range problems {
		warn(w, text)
	}
	return nil
}

func (c call) strictError(problems string) error {
	return apistatus.Undecodable(c.Kind, c.Version, problems)
}

// strictPatchError is like strictError, for a patch or its result.
func (c call) strictPatchError(problems string) error {
	return patch.InvalidResult(errors.New(problems))
}

// unknownWarnings returns the warnings about unknown fields with the given paths, in ASCII.
func unknownWarnings(fields []string) (warnings []string) {
	for i, field := range fields {
		if i == maxWarnings {
			return append(warnings, fmt.Sprintf("%d more unknown fields", len(fields)-i))
		}
		warnings = append(warnings, "unknown field "+quoteFieldPath(field))
	}
	return warnings
}

// dropRepeatedOwners returns d with each owner reference only once, and adds a warning to the
// header of w if it drops any.
func dropRepeatedOwners(w http.ResponseWriter, d *store.Document) (*store.Document, error) {
	owners := d.Lookup("metadata", "ownerReferences")
	if bytes.Count(owners, []byte("{")) < 2 {
		return d, nil
	}
	var kept []metav1.OwnerReference
	var repeated []string
	out := []byte{'['}
	err := rawjson.Elements(owners, func(value rawjson.Span) error {
		var o metav1.OwnerReference
		if err := json.Unmarshal(value.Of(owners), &o); err != nil {
			return err
		}
		if slices.ContainsFunc(kept, func(k metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(k, o) }) {
			repeated = append(repeated, string(o.UID))
			return nil
		}
		if kept = append(kept, o); len(kept) > 1 {
			out = append(out, ',')
		}
		out = append(out, value.Of(owners)...)
		return nil
	})
	if err != nil || repeated == nil {
		return d, nil // another check reports wrong types
	}
	warn(w, ".metadata.ownerReferences contains duplicate entries; only the first of each is kept; "+
		"duplicate UID(s) observed: "+strings.Join(repeated, ", "))
	return store.ParseDocument(jsonvalue.SetMetadata(d.JSON(), "ownerReferences", append(out, ']')))
}

// warn adds a warning to the header of w, unless the header already contains it.
func warn(w http.ResponseWriter, text string) {
	if value := warningHeader(text); !slices.Contains(w.Header()["Warning"], value) {
		w.Header().Add("Warning", value)
	}
}

// fieldWarnings returns the warnings about the duplicate fields of a body, in ASCII.
func fieldWarnings(duplicates []string) (warnings []string) {
	for i, field := range duplicates {
		if len(warnings) == maxWarnings {
			warnings = append(warnings, fmt.Sprintf("%d more duplicate fields", len(duplicates)-i))
			break
		}
		// A field that occurs three times in the body is listed twice in duplicates.
		if text := "duplicate field " + quoteFieldPath(field); !slices.Contains(warnings, text) {
			warnings = append(warnings, text)
		}
	}
	return warnings
}

// quoteFieldPath quotes the path of a field in ASCII and truncates it, because a client may
// choose names of any length.
func quoteFieldPath(field string) string {
	const limit = 200
	if len(field) > limit {
		return strconv.QuoteToASCII(strings.ToValidUTF8(field[:limit], "") + "…")
	}
	return strconv.QuoteToASCII(field)
}

// warningHeader formats printable ASCII text as a value of the Warning header. The code 299
// means a persistent miscellaneous warning (rfc7234#section-5.5), and "-" stands for an
// unnamed agent. Kubernetes clients show the text to their users.
func warningHeader(text string) string {
	return `299 - "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
