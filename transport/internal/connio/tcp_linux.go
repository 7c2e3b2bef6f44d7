package connio

import (
	"net"
	"syscall"
	"unsafe"
)

// unsentBytes limits the bytes that the kernel accepts before it has sent them. A client that
// never reads takes 4 MiB of kernel memory without the limit, and 180 KiB with it. At full
// speed, the limit makes a stream of single small events a third slower. For batches, and for
// streams that wait for events, no difference was measured.
const unsentBytes = 64 << 10

// limitUnsent sets TCP_NOTSENT_LOWAT (tcp(7)), for which package syscall has no name.
func limitUnsent(fd uintptr) {
	const notSentLowat = 25
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat, unsentBytes)
}

// queued returns the result of SIOCOUTQ (tcp(7)).
func queued(tcp *net.TCPConn) (n int, ok bool) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, false
	}
	var size int32
	err = raw.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&size)))
		ok = errno == 0
	})
	return int(size), ok && err == nil
}
