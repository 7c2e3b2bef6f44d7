package transport

import (
	"net/http"
	"strconv"
	"strings"
)

// ChooseCoding chooses a content coding by the values of the Accept-Encoding headers of a request, from those on offer, best first. It
// returns an empty name for identity, no coding at all, and false where the request excludes that and allows none of the offer (RFC
// 9110, section 12.5.3).
//
// The coding with the greatest weight wins, of equal weights the first in offer, and identity after those. Identity that is not
// mentioned is a last resort: a client that lists codings likes to have one. No header, and an empty one, ask for identity. The
// wildcard stands, beside identity, for the first of offer alone: who says * has no list of what it can decode. What can't be
// read counts as not said.
func ChooseCoding(acceptEncoding []string, offer ...string) (name string, ok bool) {
	weights := weightsOf(acceptEncoding)
	others, wildcard := weights["*"]
	identity, said := weights["identity"]
	switch {
	case said:
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

// leastWeight is below any that a header can say: it has three decimals at most.
const leastWeight = 0.0001

// weightsOf returns the weight of each coding that is mentioned, in lower case.
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

// Uncompressed returns r as of a client that can decompress nothing.
func WithoutCompression(r *http.Request) *http.Request {
	r = r.WithContext(r.Context()) // a copy
	r.Header = r.Header.Clone()
	r.Header.Del("Accept-Encoding")
	r.Header.Del("Sec-WebSocket-Extensions")
	return r
}
