package kubeapi

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

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
