package connio

import (
	"net"

	"golang.org/x/sys/unix"
)

// unsentBytes limits the bytes that the kernel accepts before it has sent them. A client that
// never reads takes 4 MiB of kernel memory without the limit, and 180 KiB with it. At full
// speed, the limit makes a stream of single small events a third slower. For batches, and for
// streams that wait for events, no difference was measured.
const unsentBytes = 64 << 10

// limitUnsent sets TCP_NOTSENT_LOWAT (tcp(7)).
func limitUnsent(fd uintptr) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
}

// acknowledged returns tcpi_bytes_acked (tcp(7), TCP_INFO).
func acknowledged(tcp *net.TCPConn) (n uint64) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // fails only if the connection is closed
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Bytes_acked
		}
	})
	return n
}
