package loop

import (
	"encoding/binary"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// A queue holds the streams that have something to send, in the order in which they may send.
type queue struct{ head, tail *stream }

func (q *queue) push(st *stream) {
	if q.tail == nil {
		q.head = st
	} else {
		q.tail.next = st
	}
	q.tail = st
}

func (q *queue) pop() *stream {
	st := q.head
	if q.head = st.next; q.head == nil {
		q.tail = nil
	}
	st.next = nil
	return st
}

// enqueue adds st to the queue of ready streams, unless it is in the queue or its step is running.
// It also makes sure that the writer runs.
func (c *conn) enqueue(st *stream) {
	if !st.ready && !st.stepping {
		st.ready = true
		c.ready.push(st)
	}
	c.wakeWriter()
}

// wakeWriter starts the writer unless it runs. Its goroutine ends when nothing is left to write.
func (c *conn) wakeWriter() {
	if !c.writing && !c.dead {
		c.writing = true
		go c.writeFunc()
	}
}

// A stall is the time in which a stream could not send, because a window was empty.
type stall struct {
	until   time.Time // when the stream is reset; zero means never
	blocked bool      // the window is still empty; otherwise the stream waits for its turn
}

// block makes st wait until its window and the connection's window are open. The time until st is
// reset continues if st could not use a window that was open in the meantime.
func (c *conn) block(st *stream) {
	s, ok := c.stalled[st]
	if timeout := st.timeout(); !ok && timeout > 0 {
		s.until = time.Now().Add(timeout)
	}
	s.blocked = true
	c.setStall(st, s)
}

func (c *conn) setStall(st *stream, s stall) {
	if c.stalled == nil {
		c.stalled = make(map[*stream]stall)
	}
	c.stalled[st] = s
	if s.blocked && !s.until.IsZero() {
		c.armAt(s.until)
	}
}

// endStall is called when st could send, and when it has ended.
func (c *conn) endStall(st *stream) {
	if c.stalled == nil {
		return
	}
	if delete(c.stalled, st); len(c.stalled) == 0 {
		c.stalled = nil // release the map, because it never shrinks
	}
}

// unblock enqueues a blocked stream if its window and the connection's window are open.
func (c *conn) unblock(st *stream) {
	s := c.stalled[st]
	if !s.blocked || st.window() <= 0 || c.sendWindow <= 0 {
		return
	}
	s.blocked = false
	c.stalled[st] = s
	c.enqueue(st)
}

func (c *conn) unblockAll() {
	for st := range c.stalled {
		c.unblock(st)
	}
}

// write writes the output, and calls the functions passed to Watch.Go, until nothing is left to do.
func (c *conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.dead {
		if st := c.fill(); st != nil {
			c.runStep(st)
			continue
		}
		if c.out.isEmpty() {
			if c.closing {
				// The alert of TLS may have to wait for the client.
				c.mu.Unlock()
				c.closeWrite()
				c.mu.Lock()
			}
			break
		}
		o := c.out
		c.out = output{}
		c.drained.Broadcast()
		c.mu.Unlock()
		err := c.writeOut(&o)
		o.release()
		c.mu.Lock()
		if err != nil {
			c.disconnect(err)
		}
	}
	c.out.release()
	c.writing = false
}

// fill moves pending data of ready streams to the output, one stream after another, until the
// output is full or no stream is ready. If the next stream has a step to run instead, fill returns
// that stream.
func (c *conn) fill() *stream {
	for c.ready.head != nil && c.out.room() > 0 {
		st := c.ready.pop()
		st.ready = false
		switch {
		case st.err != nil:
		case st.out != nil:
			c.turn(st)
		case st.step == nil:
		case st.window() <= 0 || c.sendWindow <= 0:
			c.block(st)
		default:
			c.endStall(st)
			return st
		}
	}
	return nil
}

// turn sends pending data of st.
func (c *conn) turn(st *stream) {
	o := st.out
	switch {
	case st.emit(o):
		if st.out == o { // emit has not closed the stream
			st.out = nil
		}
		if o.done != nil && st.err == nil {
			close(o.done)
		}
		if st.step != nil {
			c.enqueue(st)
		}
	case st.window() <= 0 || c.sendWindow <= 0:
		c.block(st)
	default:
		c.enqueue(st)
	}
}

// runStep calls st.step without holding the mutex.
func (c *conn) runStep(st *stream) {
	f := st.step
	st.step, st.stepping = nil, true
	c.mu.Unlock()
	f()
	c.mu.Lock()
	st.stepping = false
	if st.err == nil && (st.out != nil || st.step != nil) {
		c.enqueue(st)
	}
}

// writeOut writes o.
func (c *conn) writeOut(o *output) error {
	if len(o.refs) == 0 {
		return c.writer.Write(o.buf)
	}
	return c.writer.WriteVector(o.vectors())
}

const (
	// outputSize is the number of bytes at which the output is written before more data is added.
	outputSize = 128 << 10
	// maxOutput is the number of bytes at which the reader waits for the writer. Only heads and
	// frames without data exceed outputSize.
	maxOutput = 2 * outputSize
	// largeFrame is the size from which a shared frame is written without a copy. Smaller frames
	// are copied, because that is cheaper than one more element of writev.
	largeFrame = 8 << 10
	headerLen  = 9 // the header of a frame
)

// An output holds the frames of the next write. The zero value is empty. Its buffer comes from a
// pool, so that an idle connection holds none.
type output struct {
	buf  []byte
	refs []reference
	size int // all bytes, including the bytes in refs
}

// A reference is a slice that is written between two parts of the buffer.
type reference struct {
	at int // the position in the buffer
	p  []byte
}

var buffers = sync.Pool{New: func() any { return new([outputSize + 4<<10]byte) }}

func (o *output) isEmpty() bool { return o.size == 0 }

// room returns the number of bytes that may be added before the next write.
func (o *output) room() int { return outputSize - o.size }

// frame adds the header of a frame whose payload of n bytes follows.
func (o *output) frame(n int, kind http2.FrameType, flags http2.Flags, stream uint32) {
	o.grow()
	o.buf = append(o.buf, byte(n>>16), byte(n>>8), byte(n), byte(kind), byte(flags))
	o.buf = binary.BigEndian.AppendUint32(o.buf, stream)
	o.size += headerLen
}

func (o *output) uint32(v uint32) {
	o.buf = binary.BigEndian.AppendUint32(o.buf, v)
	o.size += 4
}

// copy adds a copy of p.
func (o *output) copy(p []byte) {
	o.grow()
	o.buf = append(o.buf, p...)
	o.size += len(p)
}

// reference adds p, which must not change until it has been written.
func (o *output) reference(p []byte) {
	o.refs = append(o.refs, reference{len(o.buf), p})
	o.size += len(p)
}

func (o *output) grow() {
	if o.buf == nil {
		o.buf = buffers.Get().(*[outputSize + 4<<10]byte)[:0]
	}
}

// vectors returns the output as slices for writev.
func (o *output) vectors() [][]byte {
	var all [][]byte
	from := 0
	for _, r := range o.refs {
		all = append(all, o.buf[from:r.at], r.p)
		from = r.at
	}
	return append(all, o.buf[from:])
}

// release returns the buffer to the pool.
func (o *output) release() {
	if cap(o.buf) == outputSize+4<<10 {
		buffers.Put((*[outputSize + 4<<10]byte)(o.buf[:cap(o.buf)]))
	}
	*o = output{}
}

func (o *output) settings(list []http2.Setting) {
	o.frame(6*len(list), http2.FrameSettings, 0, 0)
	for _, s := range list {
		o.buf = binary.BigEndian.AppendUint16(o.buf, uint16(s.ID))
		o.size += 2
		o.uint32(s.Val)
	}
}

func (o *output) ping(ack bool, data [8]byte) {
	var flags http2.Flags
	if ack {
		flags = http2.FlagPingAck
	}
	o.frame(len(data), http2.FramePing, flags, 0)
	o.copy(data[:])
}

func (o *output) reset(stream uint32, code http2.ErrCode) {
	o.frame(4, http2.FrameRSTStream, 0, stream)
	o.uint32(uint32(code))
}

func (o *output) windowUpdate(stream, n uint32) {
	o.frame(4, http2.FrameWindowUpdate, 0, stream)
	o.uint32(n)
}

func (o *output) goAway(last uint32, code http2.ErrCode, debug string) {
	o.frame(8+len(debug), http2.FrameGoAway, 0, 0)
	o.uint32(last)
	o.uint32(uint32(code))
	o.copy([]byte(debug))
}

// headers adds a header block as HEADERS, followed by CONTINUATION frames if it is longer than
// frameSize.
func (o *output) headers(stream uint32, block []byte, end bool, frameSize int) {
	kind := http2.FrameHeaders
	var flags http2.Flags
	if end {
		flags = http2.FlagHeadersEndStream
	}
	for {
		n := min(len(block), frameSize)
		if n == len(block) {
			flags |= http2.FlagHeadersEndHeaders // CONTINUATION has the same flag
		}
		o.frame(n, kind, flags, stream)
		o.copy(block[:n])
		if block = block[n:]; len(block) == 0 {
			return
		}
		kind, flags = http2.FrameContinuation, 0
	}
}
