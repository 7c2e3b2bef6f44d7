package loop

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

func newConn(hs *http.Server, nc net.Conn, state *tls.ConnectionState, h http.Handler, o Options) *conn {
	c := &conn{endpoint: endpoint{
		hs: hs, handler: h, settings: settingsOf(hs, o), nc: nc, tls: state,
		remote: nc.RemoteAddr().String(),
	}}
	timeout := c.settings.writeTimeout
	if timeout == 0 {
		timeout = -1
	}
	c.writer = connio.NewFrameWriter(nc, timeout)
	c.writeFunc = c.write
	c.in = connio.NewReader(nc)
	c.framer = http2.NewFramer(nil, c.in)
	c.framer.SetMaxReadFrameSize(c.settings.frameSize)
	c.framer.SetReuseFrames()
	c.headers.init(c.settings.headerBytes)
	c.sendWindow, c.peerWindow, c.peerFrame = initialWindow, initialWindow, defaultFrameSize
	c.drained.L = &c.mu
	c.encoder = hpack.NewEncoder(encodedWriter{c})
	c.encoder.SetMaxDynamicTableSizeLimit(c.settings.encoderTable)
	c.recv = window{limit: c.settings.connWindow, open: initialWindow}
	return c
}

// open sends the server's preface.
func (c *conn) open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.timer = time.AfterFunc(time.Hour, c.tick)
	c.lastFrame = now
	c.budget.refilled = now
	c.timers.settingsAckBy = now.Add(c.settings.settingsTimeout)
	c.timers.idleSince = now
	c.out.settings(c.settings.frame())
	if n := c.recv.limit - c.recv.open; n > 0 {
		c.recv.open += n
		c.out.windowUpdate(0, uint32(n))
	}
	c.armAt(c.timers.settingsAckBy)
	c.armIdle()
	c.wakeWriter()
}

// serve serves the connection until it ends. It reads on the calling goroutine.
func (c *conn) serve(ctx context.Context) {
	c.values = context.WithoutCancel(ctx)
	stop := context.AfterFunc(ctx, func() { c.nc.Close() })
	defer stop()
	defer c.timer.Stop()
	defer c.reports.Wait() // net/http reports the end afterwards
	connio.TuneTCP(c.nc)
	err := c.readPreface()
	if err == nil {
		err = c.read()
	}
	c.end(err)
}

// readPreface reads the client's preface. In clear text net/http has read it already.
func (c *conn) readPreface() error {
	if c.tls == nil {
		return nil
	}
	if !c.settings.acceptsCipher(c.tls) {
		return connError{http2.ErrCodeInadequateSecurity, "the cipher suite is prohibited for HTTP/2"}
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.nc, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return connError{http2.ErrCodeProtocol, "the connection preface is wrong"}
	}
	return nil
}

// end ends the connection after the reader has stopped because of err.
func (c *conn) end(err error) {
	goAway, ok := asConnError(err)
	c.mu.Lock()
	if ok && !c.dead {
		c.out.goAway(c.lastID, goAway.code, goAway.cause)
		if c.settings.countError != nil {
			c.settings.countError("conn_" + goAway.code.String())
		}
		c.close()
		_ = c.nc.SetReadDeadline(time.Now().Add(lingerTime))
		c.mu.Unlock()
		// If the connection were closed with unread input, the client might lose the GOAWAY.
		_, _ = io.CopyN(io.Discard, c.nc, lingerBytes)
		c.mu.Lock()
	}
	c.disconnect(err)
	c.mu.Unlock()
	c.nc.Close()
}
