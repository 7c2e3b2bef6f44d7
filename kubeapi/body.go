package kubeapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
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
		return ToJSON, nil
	case mediaType == protobody.MediaType:
		return protobody.ToJSON, nil
	}
	return nil, &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
		Message: fmt.Sprintf("the body of the request was in an unknown format (%s) - accepted media types include: application/json, application/yaml, %s",
			contentType, protobody.MediaType),
	}
}
