package client

import (
	"fmt"
	"io"
)

// A boundedReader returns an error if a decoder reads beyond the allowed offset. A decoder does so
// only if a value, or the whole list, is larger than its limit.
type boundedReader struct {
	r       io.Reader
	total   int64 // a negative value means no limit
	allowed int64
	read    int64
}

func (r *boundedReader) Read(p []byte) (int, error) {
	limit := r.allowed
	if r.total >= 0 {
		limit = min(limit, r.total)
	}
	if r.read >= limit {
		// The limit is reached, so only the end of the list may follow.
		n, err := r.r.Read(p[:min(1, len(p))])
		if n > 0 {
			err = corruptList(fmt.Sprintf("an object or the list exceeds the limit of %d bytes", limit), nil)
		}
		return 0, err
	}
	n, err := r.r.Read(p[:min(int64(len(p)), limit-r.read)])
	r.read += int64(n)
	return n, err
}
