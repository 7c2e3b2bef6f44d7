package connio

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

const (
	// largeFrame is the smallest mean size of frames at which writev is cheaper than copying
	// them into one buffer.
	largeFrame = 4 << 10
	// maxVector is the maximum number of frames in one writev. The runtime keeps the vector, 16
	// bytes per frame, for the lifetime of the connection.
	maxVector = 16
	// maxRecord is the maximum size of a TLS record. Package crypto/tls writes each record
	// separately, so writes of this size cost nothing extra.
	maxRecord = 16 << 10
)

// A FrameWriter writes batches of frames to a connection. The deadline of a write is between one
// and two timeouts after its start. If the connection has accepted bytes by the deadline, or the
// peer has acknowledged some, the write gets another timeout; otherwise it fails. The system wakes
// a writer only when there is room for tens of kilobytes, which a slow peer may take minutes to
// read. So a peer that accepts nothing is detected within three timeouts. A TLS connection cannot
// be used after its deadline has expired. So with TLS each record has a deadline, and a [lifeline]
// moves it in time. A FrameWriter is not safe for concurrent use.
type FrameWriter struct {
	conn     net.Conn
	lifeline *lifeline // nil if conn is not a TLS connection, or if there is no timeout
	vector   bool      // conn supports writev
	deadline WriteDeadline
	// acked is the number of bytes that the peer had acknowledged when the deadline was moved. It
	// is not used with TLS.
	acked uint64
}

// NewFrameWriter returns a FrameWriter for conn. A negative timeout means no limit.
func NewFrameWriter(conn net.Conn, timeout time.Duration) FrameWriter {
	_, tcp := TCP(conn)
	w := FrameWriter{conn: conn, vector: tcp, deadline: WriteDeadline{SetFunc: conn.SetWriteDeadline, Timeout: timeout}}
	if secure, ok := conn.(*tls.Conn); ok && timeout > 0 {
		w.lifeline = &lifeline{conn: secure, timeout: timeout}
	}
	return w
}

// Arm prepares the write deadline for a write that does not use w.
func (w *FrameWriter) Arm() { w.deadline.Arm() }

// WriteFrames writes frames in one write if possible. It may overwrite the slice, but not the
// frames, which must never change again. With TLS no vector is used, because each frame in a vector
// would become a TLS record and a system call.
func (w *FrameWriter) WriteFrames(frames [][]byte) error {
	if len(frames) > 1 && w.vector {
		total := 0
		for _, f := range frames {
			total += len(f)
		}
		if total >= largeFrame*len(frames) {
			return w.writeVectors(frames)
		}
	}
	return WriteBatched(frames, w.Write)
}

// Write writes p. With TLS it writes one record at a time, because each record has a deadline.
func (w *FrameWriter) Write(p []byte) error {
	for w.lifeline != nil && len(p) > maxRecord {
		if err := w.write(p[:maxRecord]); err != nil {
			return err
		}
		p = p[maxRecord:]
	}
	return w.write(p)
}

func (w *FrameWriter) write(p []byte) error {
	return w.whileProgress(func() (int64, error) {
		n, err := w.conn.Write(p)
		p = p[n:]
		return int64(n), err
	})
}

func (w *FrameWriter) writeVectors(frames [][]byte) error {
	for len(frames) > 0 {
		n := min(len(frames), maxVector)
		if err := w.WriteVector(frames[:n]); err != nil {
			return err
		}
		frames = frames[n:]
	}
	return nil
}

// WriteVector writes the parts, in one write if SupportsVector returns true. It overwrites the
// slice, but not the parts.
func (w *FrameWriter) WriteVector(parts [][]byte) error {
	vector := net.Buffers(parts)
	return w.whileProgress(func() (int64, error) { return vector.WriteTo(w.conn) })
}

// SupportsVector reports whether the connection supports writev.
func (w *FrameWriter) SupportsVector() bool { return w.vector }

// whileProgress calls write until everything is written, or until the peer took nothing before the
// deadline expired. Each call of write continues where the last one stopped.
func (w *FrameWriter) whileProgress(write func() (int64, error)) error {
	switch moved := w.deadline.Arm(); {
	case w.lifeline != nil:
		w.lifeline.hold()
		defer w.lifeline.release()
	case moved:
		w.acked = Acknowledged(w.conn)
	}
	for {
		n, err := write()
		if err == nil {
			return nil
		}
		if w.lifeline != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		before := w.acked
		if w.acked = Acknowledged(w.conn); n == 0 && w.acked == before {
			return err
		}
		w.deadline.Extend()
	}
}
