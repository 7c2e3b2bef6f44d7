package kubeapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/yamlbody"
	"github.com/listwatch/listwatch/kubeapi/protobody"
)

// bodyTime is how long a client may take to send a body.
const bodyTimeout = 30 * time.Second

// readObject returns the body of a write as JSON; by its Content-Type it must be that, YAML or Kubernetes' Protocol Buffers.
func (h *Handler) readObject(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	data, err := h.readBody(w, r)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	toJSON, err := transcoder(r.Header.Get("Content-Type"))
	if err != nil || toJSON == nil {
		return data, err
	}
	limit := h.bodyBytes()
	if limit <= 0 {
		limit = max(DefaultMaxBodyBytes, 4*int64(len(data))) // a hostile body could make far more of it
	}
	out, err := toJSON(data, limit)
	if errors.Is(err, protobody.ErrTooLarge) {
		return nil, tooLarge(limit)
	}
	return out, err
}

// bodyBytes returns the largest size of a body; negative: there is none.
func (h *Handler) bodyBytes() int64 {
	if h.MaxBodyBytes == 0 {
		return DefaultMaxBodyBytes
	}
	return h.MaxBodyBytes
}

// readBody returns the body of a write, which must be small enough.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body := r.Body
	most := h.bodyBytes()
	if most > 0 {
		if r.ContentLength > most {
			return nil, tooLarge(most)
		}
		body = http.MaxBytesReader(w, body, most)
	}
	// Not every ResponseWriter has deadlines; then whoever made it bounds the time.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	data, err := io.ReadAll(body)
	_ = control.SetReadDeadline(time.Time{})
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge(e.Limit)
	}
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the body of the request could not be read", Err: err}
	}
	return data, nil
}

func tooLarge(most int64) error {
	return &listwatch.Error{
		Code: listwatch.Invalid, Status: http.StatusRequestEntityTooLarge, Reason: "RequestEntityTooLarge",
		Message: fmt.Sprintf("Request entity too large: limit is %d", most),
	}
}

// transcoder returns what makes JSON of about limit bytes at most of bodies of a Content-Type. It is nil for JSON, and for bodies that don't
// say what they are: nothing, or what curl -d says of everything. Whether they are JSON shows when they are read. A page of another origin
// can send such a body unasked; checkOrigin has refused it before.
func transcoder(contentType string) (toJSON func(body []byte, limit int64) ([]byte, error), err error) {
	if contentType == "" {
		return nil, nil
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
	case mediaType == "application/json", mediaType == "application/x-www-form-urlencoded":
		return nil, nil
	case mediaType == "application/yaml":
		return yamlbody.ToJSON, nil
	case mediaType == protobody.MediaType:
		return protobody.ToJSON, nil
	}
	return nil, &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
		Message: fmt.Sprintf("the body of the request was in an unknown format (%s) - accepted media types include: application/json, application/yaml, %s",
			contentType, protobody.MediaType),
	}
}

// A fieldValidation is what is done about members of a body that come twice, and numbers that few clients can read: nothing, a warning, or a
// refusal (Kubernetes API concepts, "Field validation"). Of members that are taken the last counts. Members that no schema knows are kept and no matter: objects may have any.
type fieldValidation string

const (
	validationIgnore fieldValidation = "Ignore"
	validationWarn   fieldValidation = "Warn"
	validationStrict fieldValidation = "Strict"
)

// readFieldValidation reads the parameter of the query. Without one it is Warn, as in kube-apiserver.
func readFieldValidation(q url.Values) (fieldValidation, error) {
	switch v := fieldValidation(q.Get("fieldValidation")); v {
	case "":
		return validationWarn, nil
	case validationIgnore, validationWarn, validationStrict:
		return v, nil
	default:
		return "", &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("fieldValidation: %q is none of Ignore, Warn and Strict", string(v))}
	}
}

// mostWarnings bounds how much is said about one body.
const maxWarnings = 10

// compact is [rawjson.Compact] for what came in a body.
func compact(body []byte) ([]byte, error) {
	if bytes.HasPrefix(body, []byte("\ufeff")) {
		return nil, errors.New("it begins with a byte order mark, which JSON has not (rfc8259#section-8.1)")
	}
	return rawjson.Compact(body)
}

// hugeNumber returns the first number of doc, compact JSON, that is beyond 64-bit floating point; empty: there is none.
func outOfRangeNumber(doc []byte) string {
	for i := 0; i < len(doc); {
		end := i + 1
		switch c := doc[i]; {
		case c == '"':
			for ; doc[end] != '"'; end++ {
				if doc[end] == '\\' {
					end++
				}
			}
			end++
		case c == '-' || c >= '0' && c <= '9':
			for end < len(doc) && strings.IndexByte("0123456789.eE+-", doc[end]) >= 0 {
				end++
			}
			if number := doc[i:end]; isOutOfRange(number) {
				return string(number)
			}
		}
		i = end
	}
	return ""
}

func isOutOfRange(number []byte) bool {
	if len(number) < 300 && !bytes.ContainsAny(number, "eE") {
		return false // the largest float64 has 309 digits
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return err != nil
}

// settle returns a body of a write, compact JSON, without members that come twice. Warnings go to the header of w.
func (c resourceRequest) applyFieldValidation(w http.ResponseWriter, v fieldValidation, body []byte) ([]byte, error) {
	unique, repeated := rawjson.DropDuplicates(body)
	if v == validationIgnore {
		return unique, nil
	}
	words := fieldWarnings(unique, repeated)
	if v == validationStrict && words != nil {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid,
			Message: fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: %s",
				c.Kind, c.Version, c.Kind, strings.Join(words, ", ")),
		}
	}
	for _, text := range words {
		w.Header().Add("Warning", warningHeader(text))
	}
	return unique, nil
}

// complaints says what is to be said about a body, in ASCII.
func fieldWarnings(unique []byte, repeated []string) (words []string) {
	for i, field := range repeated {
		if len(words) == maxWarnings {
			words = append(words, fmt.Sprintf("%d more duplicate fields", len(repeated)-i))
			break
		}
		if text := "duplicate field " + quoteFieldPath(field); !slices.Contains(words, text) { // it may be there three times
			words = append(words, text)
		}
	}
	// It is kept as it is written, but kube-apiserver would refuse it, and what decodes into float64 can't read it, nor the list it is in.
	if number := outOfRangeNumber(unique); number != "" {
		words = append(words, fmt.Sprintf("the number %.40s is beyond the range of 64-bit floating point", number))
	}
	return words
}

// shortQuote quotes the place of a field in ASCII; who chose the names may have chosen long ones.
func quoteFieldPath(field string) string {
	const most = 200
	if len(field) > most {
		return strconv.QuoteToASCII(strings.ToValidUTF8(field[:most], "") + "…")
	}
	return strconv.QuoteToASCII(field)
}

// warning spells printable ASCII as a value of the header Warning: 299 is a miscellaneous one that persists (rfc7234#section-5.5), and "-" who
// warns. Clients of Kubernetes show the text to their users.
func warningHeader(text string) string {
	return `299 - "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
