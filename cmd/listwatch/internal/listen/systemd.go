package listen

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

// systemdPrefix marks an address that names a socket of systemd: systemd:NAME is the socket with
// FileDescriptorName=NAME (systemd.socket(5)).
const systemdPrefix = "systemd:"

// systemdSockets are the sockets that systemd has passed to this process, by name. They can be
// taken over once.
var systemdSockets = sync.OnceValues(activation.ListenersWithNames)

// openListener listens at the address of a flag, or takes over the systemd socket that addr names.
// If check returns an error for the address, openListener returns that error.
func openListener(flag, addr string, check func(addr string) error) (net.Listener, error) {
	name, isSocket := strings.CutPrefix(addr, systemdPrefix)
	if !isSocket {
		if err := check(addr); err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, listenError(flag, addr, err)
		}
		return l, nil
	}
	sockets, err := systemdSockets()
	if err != nil {
		return nil, listenError(flag, addr, err)
	}
	if len(sockets[name]) != 1 || sockets[name][0] == nil {
		return nil, cli.Usagef(
			"%s %s: systemd has passed %d sockets with this name, want 1: set FileDescriptorName=%s in one socket unit",
			flag, addr, len(sockets[name]), name)
	}
	l := sockets[name][0]
	if err := check(l.Addr().String()); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// notifySystemd reports a state to systemd (sd_notify(3)), if systemd has started this process.
func notifySystemd(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("cannot notify systemd", "error", err)
	}
}

// listenError adds advice to an error of net.Listen.
func listenError(flag, addr string, err error) error {
	advice := "use another address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "another program listens there: stop it, or use another address, such as 127.0.0.1:0 for any free port"
	case errors.Is(err, syscall.EACCES):
		advice = "ports below 1024 require root: use a higher port"
	}
	cause := err
	if op, ok := errors.AsType[*net.OpError](err); ok {
		cause = op.Err
	}
	return fmt.Errorf("%s %s: %w: %s", flag, addr, cause, advice)
}
