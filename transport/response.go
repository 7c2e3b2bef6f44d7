package transport

import (
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/compress"
)

// Bounds on what is read of a response that is no stream.
const (
	maxErrorBody  = 256 << 10
	maxErrorWait  = 5 * time.Second
	maxExcerpt    = 200 // runes
	maxRetryAfter = 1 << 31
)

// ResponseError returns what a response that is no stream says, and closes it: a Kubernetes Status where the body is one, otherwise
// the HTTP status with one line of the body. Retry-After is taken as seconds or as a date (RFC 9110, section 10.2.3); the
// later wins where the Status says so too. It reads a bounded part of the body, for a bounded time.
func ResponseError(resp *http.Response) *listwatch.Error {
	late := time.AfterFunc(maxErrorWait, func() { resp.Body.Close() })
	body, _ := io.ReadAll(io.LimitReader(decoded(resp), maxErrorBody))
	late.Stop()
	resp.Body.Close()

	e := statusError(resp, body)
	if wait := retryAfter(resp.Header); wait > e.RetryAfter() {
		if e.Details == nil {
			e.Details = new(listwatch.Details)
		}
		e.Details.RetryAfter = wait
	}
	return e
}

// decoded returns the body of resp without its content coding, where that is known.
func decoded(resp *http.Response) io.Reader {
	r, err := compress.NewReader(codingOf(resp.Header), resp.Body)
	if err != nil {
		return resp.Body
	}
	return r
}

func statusError(resp *http.Response, body []byte) *listwatch.Error {
	if e := listwatch.ParseStatus(body); e.Remote {
		if e.Status == 0 {
			e.Status, e.Code = resp.StatusCode, codeOf(resp.StatusCode)
		}
		return e
	}
	message := "the server answered " + strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	if line := excerpt(string(body)); line != "" {
		message += ": " + line
	}
	return &listwatch.Error{Code: codeOf(resp.StatusCode), Remote: true, Status: resp.StatusCode, Message: message}
}

// codeOf is what an HTTP status tells where a stream was asked for: anything but 200 that is no error is no stream either.
func codeOf(status int) listwatch.Code {
	if status < 400 {
		return listwatch.Unsupported
	}
	return listwatch.CodeOfHTTP(status)
}

// retryAfter reads Retry-After; zero: not said, or past.
func retryAfter(h http.Header) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(n, maxRetryAfter)) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	// The server's own clock, where it told, is the one its date was made with.
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(0, at.Sub(now))
}

// excerpt returns the beginning of a body in one line: the title of a page, or its text.
func excerpt(body string) string {
	body = strings.ToValidUTF8(body, "")
	if strings.HasPrefix(strings.TrimSpace(body), "<") {
		body = html.UnescapeString(pageText(body))
	}
	var line strings.Builder
	n := 0
	for _, word := range strings.FieldsFunc(body, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
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

// pageText returns the title of an HTML page, or else all text between its tags.
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
