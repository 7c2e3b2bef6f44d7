package chunked

import "syscall"

// unsentBytes is how much of what was written the kernel holds before it is sent. Without it a client that never reads makes the
// kernel keep 4 MiB; with it, some 160 KiB, at no cost that could be measured.
const unsentBytes = 16 << 10

// limitUnsent sets TCP_NOTSENT_LOWAT, which package syscall has no name for (tcp(7)).
func limitUnsent(fd uintptr) {
	const notSentLowat = 25
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat, unsentBytes)
}
