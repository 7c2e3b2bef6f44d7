package transport

import "syscall"

// unsentBytes is how much of what was written the kernel holds before it is sent. Without it a client that never reads makes the
// kernel keep 4 MiB, and with it 180 KiB. One stream of single small events at full speed takes a third more time for it; batches,
// and streams that wait for events, nothing that could be measured.
const unsentBytes = 64 << 10

// limitUnsent sets TCP_NOTSENT_LOWAT, which package syscall has no name for (tcp(7)).
func limitUnsent(fd uintptr) {
	const notSentLowat = 25
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat, unsentBytes)
}
