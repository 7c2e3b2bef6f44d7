// Package httpheader parses HTTP headers, and writes headers that list preferences (RFC 9110,
// section 12).
package httpheader

import (
	"strconv"
	"strings"
)

// ChooseEncoding chooses a content coding from offer according to the Accept-Encoding
// headers of a request (RFC 9110, section 12.5.3). offer must be sorted by preference. An
// empty name means identity, which is no coding. ok is false if the request excludes
// identity and every coding on offer.
//
// The coding with the greatest weight wins. If weights are equal, the first coding in offer wins,
// and every coding wins over identity. If the request does not mention identity, identity is used
// only if no coding matches, because a client that lists codings prefers one of them. A missing or
// empty header selects identity. The wildcard matches only identity and the first coding of offer,
// because a client that sends a wildcard does not say which codings it supports. Malformed elements
// are ignored.
func ChooseEncoding(acceptEncoding []string, offer ...string) (name string, ok bool) {
	weights := weightsOf(acceptEncoding)
	others, wildcard := weights["*"]
	identity, mentioned := weights["identity"]
	switch {
	case mentioned:
	case wildcard:
		identity = others
	default:
		identity = leastWeight
	}
	best := 0.0
	for i, c := range offer {
		q, named := weights[c]
		if !named && i == 0 {
			q = others
		}
		if q > best {
			name, best = c, q
		}
	}
	switch {
	case best > 0 && best >= identity:
		return name, true
	case identity > 0:
		return "", true
	}
	return "", false
}

// leastWeight is less than any positive weight in a header, because weights have at most
// three decimals.
const leastWeight = 0.0001

// weightsOf returns the weight of each coding in the headers, by its name in lower case.
func weightsOf(acceptEncoding []string) map[string]float64 {
	weights := map[string]float64{}
	for item := range strings.SplitSeq(strings.Join(acceptEncoding, ","), ",") {
		name, params, weighted := strings.Cut(item, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		q := 1.0
		if weighted {
			key, value, _ := strings.Cut(params, "=")
			var err error
			q, err = strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil || !strings.EqualFold(strings.TrimSpace(key), "q") || !(q >= 0 && q <= 1) {
				continue
			}
		}
		name = strings.TrimPrefix(name, "x-") // x-gzip is gzip: section 8.4.1.3
		if name != "" {
			weights[name] = q
		}
	}
	return weights
}

// Preferences returns the value of an Accept header, or of a similar header, that requests
// names in order of preference.
func Preferences(names []string) string {
	var s strings.Builder
	for i, name := range names {
		if i > 0 {
			s.WriteString(", ")
		}
		s.WriteString(name)
		if i > 0 {
			s.WriteString(";q=0." + strconv.Itoa(max(1, 10-i)))
		}
	}
	return s.String()
}
