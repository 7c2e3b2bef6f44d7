package clients

import (
	"fmt"
	"io"
	"net/url"
	"regexp"
)

// stateQuery makes a watch of listwatch end its initial state with a bookmark that names the state.
const stateQuery = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

// statePattern finds the version and the identifier of a state in a bookmark.
var statePattern = regexp.MustCompile(`"resourceVersion":"(\d+)","annotations":{[^}]*"listwatch\.dev/state":"([^"]+)"`)

// since reads a state of listwatch, and lets later watches request the difference to it.
func (l *load) since() (err error) {
	l.target.Path += stateQuery
	if l.opener, err = newOpener(l.target); err != nil {
		return err
	}
	r, err := l.open()
	if err != nil {
		return err
	}
	version, state, err := readState(r)
	if err != nil {
		return err
	}
	l.target.Path += fmt.Sprintf("&resourceVersion=%s&initialEventsSince=%[1]s&initialEventsState=%s", version, url.QueryEscape(state))
	l.opener, err = newOpener(l.target)
	return err
}

// readState reads r until it finds a state.
func readState(r io.Reader) (version, state string, err error) {
	const longest = 4 << 10 // longer than a bookmark
	var text []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		text = append(text, buf[:n]...)
		if m := statePattern.FindSubmatch(text); m != nil {
			return string(m[1]), string(m[2]), nil
		}
		if err != nil {
			return "", "", fmt.Errorf("read a state: %w", err)
		}
		text = text[max(0, len(text)-longest):]
	}
}
