package loop

// A window is the number of bytes that the client may send, on a stream or on the connection.
type window struct {
	limit    int32 // the size of the window when all received bytes have been consumed
	open     int32 // the bytes that the client may still send
	consumed int32 // the consumed bytes that were not granted again yet
}

// take counts n received bytes. It reports whether the client was allowed to send them.
func (w *window) take(n int32) bool {
	if n > w.open {
		return false
	}
	w.open -= n
	return true
}

// consume counts n bytes that were consumed. It returns the increment for a WINDOW_UPDATE, or zero
// if the increment is still too small to be worth a frame.
func (w *window) consume(n int32) int32 {
	w.consumed += n
	if w.consumed < w.limit/4 {
		return 0
	}
	grant := w.consumed
	w.open += grant
	w.consumed = 0
	return grant
}

// grow doubles the window, up to maximum, and returns the increment.
func (w *window) grow(maximum int32) int32 {
	n := min(w.limit, maximum-w.limit)
	w.limit += n
	w.open += n
	return n
}

// A cutStream is a stream that this end has closed before the client did.
type cutStream struct {
	id     uint32
	window int32 // the bytes of DATA that the client may still send
}

// cutStreams holds the streams that this end has closed before the client did, for example by an
// early response to an upload. Until the client learns of it, it sends the rest of its request.
// These frames are ignored and cost nothing.
//
// Frames that cannot have been under way are errors: DATA beyond the stream's window, and frames
// that follow the END_STREAM or RST_STREAM of the client itself. RFC 9113, section 5.1, lets a
// server ignore frames of the second kind after it has reset the stream. They still get
// STREAM_CLOSED, as on any other stream, because the client has lost track of its own streams.
//
// A client has at most SETTINGS_MAX_CONCURRENT_STREAMS streams open. It learns of closed streams in
// the order in which they were closed. So frames under way can belong only to the streams that were
// closed last. The zero value is empty.
type cutStreams struct {
	list []cutStream
	next int // the index of the oldest stream, once the list is full
}

// add adds a stream. limit is the maximum number of streams.
func (s *cutStreams) add(cut cutStream, limit int) {
	if len(s.list) < limit {
		s.list = append(s.list, cut)
		return
	}
	s.list[s.next] = cut
	s.next = (s.next + 1) % len(s.list)
}

// find returns the stream with the number id, or nil if the client may no longer send frames for
// it.
func (s *cutStreams) find(id uint32) *cutStream {
	for i := range s.list {
		if s.list[i].id == id {
			return &s.list[i]
		}
	}
	return nil
}

// take counts n bytes of DATA for the stream with the number id. It reports whether they may have
// been under way.
func (s *cutStreams) take(id uint32, n int32) bool {
	cut := s.find(id)
	if cut == nil || n > cut.window {
		return false
	}
	cut.window -= n
	return true
}

// end removes a stream, because the client has ended it too.
func (s *cutStreams) end(id uint32) {
	if cut := s.find(id); cut != nil {
		*cut = cutStream{}
	}
}
