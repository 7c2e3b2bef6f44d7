package transport

import (
	"html"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/kubestatus"
)

// Limits for reading an error response.
const (
	maxErrorBody  = 256 << 10
	maxErrorWait  = 5 * time.Second
	maxExcerpt    = 200     // runes
	maxRetryAfter = 1 << 31 // seconds
)

// ResponseError reads and closes a response that is not a stream, and converts it to an error. If
// the body is a Kubernetes Status, ResponseError converts it. Otherwise the error has the HTTP
// status and one line of the body. Retry-After may be a number of seconds or a date (RFC 9110,
// section 10.2.3). If the Status has retryAfterSeconds too, the longer time is used. Both the size
// of the body and the time to read it are limited.
//
// A body with the media type of one of framings, those of the request, is decoded by it if it is a
// [framing.StatusDecoder].
func ResponseError(resp *http.Response, framings ...framing.Framer) *listwatch.Error {
	timeout := time.AfterFunc(maxErrorWait, func() { resp.Body.Close() })
	body, _ := io.ReadAll(io.LimitReader(decodedBody(resp), maxErrorBody))
	timeout.Stop()
	resp.Body.Close()

	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	for _, f := range framings {
		if d, ok := f.(framing.StatusDecoder); ok && f.MediaType() == mediaType {
			if status, err := d.DecodeStatus(body); err == nil {
				body = status
			}
		}
	}
	e := statusError(resp, body)
	if wait := retryAfter(resp.Header); wait > e.RetryAfter() {
		if e.Details == nil {
			e.Details = new(listwatch.Details)
		}
		e.Details.RetryAfter = wait
	}
	return e
}

// decodedBody returns the body of resp. It decompresses known content codings.
func decodedBody(resp *http.Response) io.Reader {
	r, err := compress.NewReader(compress.CodingOf(resp.Header), resp.Body)
	if err != nil {
		return resp.Body
	}
	return r
}

func statusError(resp *http.Response, body []byte) *listwatch.Error {
	if e := kubestatus.Parse(body); e.Remote {
		if e.Status == 0 {
			e.Status, e.Code = resp.StatusCode, codeOf(resp.StatusCode)
		}
		return e
	}
	message := "the server responded with " + strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	if line := excerpt(string(body)); line != "" {
		message += ": " + line
	}
	return &listwatch.Error{Code: codeOf(resp.StatusCode), Remote: true, Status: resp.StatusCode, Message: message}
}

// codeOf returns the code for an HTTP status. A status below 400 is Unsupported, because the
// response is not a stream.
func codeOf(status int) listwatch.Code {
	if status < 400 {
		return listwatch.Unsupported
	}
	return kubestatus.CodeOfHTTP(status)
}

// retryAfter parses the Retry-After header. It returns zero if there is none, or if its date is
// in the past.
func retryAfter(h http.Header) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(n, maxRetryAfter)) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	// If the server sent a Date, compute the delay with this time instead of the local time,
	// because Retry-After is based on the server's clock.
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(0, at.Sub(now))
}

// excerpt returns the beginning of body on one line. If body is an HTML page, excerpt uses only its
// title, or its text if it has no title.
func excerpt(body string) string {
	body = strings.ToValidUTF8(body, "")
	if strings.HasPrefix(strings.TrimSpace(body), "<") {
		body = html.UnescapeString(pageText(body))
	}
	var line strings.Builder
	n := 0
	isGap := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	for _, word := range strings.FieldsFunc(body, isGap) {
		if n > 0 {
			line.WriteByte(' ')
			n++
		}
		for _, r := range word {
			if n == maxExcerpt {
				return line.String() + "…"
			}
			line.WriteRune(r)
			n++
		}
	}
	return line.String()
}

// pageText returns the title of an HTML page, or all text between its tags if the page has no
// title.
func pageText(page string) string {
	var text strings.Builder
	for {
		before, rest, more := strings.Cut(page, "<")
		text.WriteString(before)
		if !more {
			return text.String()
		}
		tag, rest, _ := strings.Cut(rest, ">")
		name, _, _ := strings.Cut(strings.ToLower(tag), " ")
		switch name {
		case "title":
			title, _, _ := strings.Cut(rest, "<")
			if strings.TrimSpace(title) != "" {
				return title
			}
		case "script", "style":
			_, rest, _ = strings.Cut(rest, "</")
			_, rest, _ = strings.Cut(rest, ">")
			page = rest
			continue
		}
		text.WriteByte(' ')
		page = rest
	}
}
