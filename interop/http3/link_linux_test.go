package http3

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// A link connects this network namespace, as serverIP, with another one. It needs root. It delays
// and loses packets itself, because not every kernel has netem.
const (
	serverIP  = "10.213.7.1"
	clientIP  = "10.213.7.2"
	namespace = "listwatch-http3"
)

// newLink creates a link that delays each packet by delay, and drops the fraction loss of them.
func newLink(t testing.TB, delay time.Duration, loss float64) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	near, far := openTUN(t, "lw-near"), openTUN(t, "lw-far")
	run(t, "ip netns add "+namespace)
	t.Cleanup(func() { run(t, "ip netns del "+namespace) })
	run(t, "ip link set lw-far netns "+namespace)
	run(t, "ip addr add "+serverIP+" peer "+clientIP+" dev lw-near")
	run(t, "ip link set lw-near up")
	run(t, "ip -n "+namespace+" addr add "+clientIP+" peer "+serverIP+" dev lw-far")
	run(t, "ip -n "+namespace+" link set lw-far up")
	go forward(near, far, delay, loss) // ends when the devices are closed
	go forward(far, near, delay, loss)
}

func run(t testing.TB, command string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}

// openTUN creates a network device whose packets the program reads and writes.
func openTUN(t testing.TB, name string) *os.File {
	t.Helper()
	fd, err := syscall.Open("/dev/net/tun", syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("/dev/net/tun: %v", err)
	}
	var request struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], name)
	request.flags = syscall.IFF_TUN | syscall.IFF_NO_PI
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TUNSETIFF,
		uintptr(unsafe.Pointer(&request))); e != 0 {
		t.Fatalf("TUNSETIFF %s: %v", name, e)
	}
	f := os.NewFile(uintptr(fd), strings.TrimSpace(name))
	t.Cleanup(func() { f.Close() })
	return f
}

// forward moves packets from one device to the other. All packets take the same time, so they stay
// in order.
func forward(from, to *os.File, delay time.Duration, loss float64) {
	type packet struct {
		due  time.Time
		data []byte
	}
	queue := make(chan packet, 10_000) // longer than any window
	go func() {
		for p := range queue {
			<-time.After(time.Until(p.due))
			to.Write(p.data) // a full device drops the packet, as a network would
		}
	}()
	defer close(queue)
	for {
		data := make([]byte, 2048)
		n, err := from.Read(data)
		if err != nil {
			return
		}
		if rand.Float64() >= loss {
			queue <- packet{time.Now().Add(delay), data[:n]}
		}
	}
}
