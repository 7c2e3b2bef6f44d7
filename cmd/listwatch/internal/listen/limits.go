package listen

import (
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

// limitOptions contains the flags about limits. docs/operations.md describes them.
type limitOptions struct {
	connections               int
	watches, watchesPerClient int
	requests, writes          int
	memory                    cli.ByteSize
	writeTimeout, shutdown    time.Duration
	idleTimeout               time.Duration
	drainSpread               time.Duration
	trustedProxies            []string
}

func (o *limitOptions) addFlags(f *pflag.FlagSet) {
	o.memory = cli.ByteSize(defaultMemory())
	f.IntVar(&o.connections, "max-connections", 0,
		"maximum `number` of connections to each of --addr and --tls-addr; further ones are closed; 0 means the limit of open files but 256, a negative value no limit")
	f.IntVar(&o.watches, "max-watches", 0,
		"maximum `number` of open watches; 0 means one for each 16KiB of --memory, a negative value no limit")
	f.IntVar(&o.watchesPerClient, "max-watches-per-client", 0,
		"maximum `number` of open watches of one user, or of one address without users; 0 means half of --max-watches, a negative value no limit")
	f.IntVar(&o.requests, "max-requests", watchserver.DefaultRequests,
		"maximum `number` of lists, reads and writes being served; a negative value means no limit")
	f.IntVar(&o.writes, "max-writes", watchserver.DefaultWrites,
		"maximum `number` of writes being executed; a negative value means no limit")
	f.Var(
		&o.memory, "memory", "`size` of the memory for objects, history, bodies and lists; by default half of the cgroup's limit, or 1GiB; a negative value means no limit")
	f.DurationVar(&o.writeTimeout, "write-timeout", transport.DefaultWriteTimeout,
		"time after which a client that accepts no byte is disconnected")
	f.DurationVar(&o.idleTimeout, "idle-timeout", h2.DefaultIdleTimeout,
		"time after which a connection without a request is closed, which must be longer than proxies keep theirs; a negative value means no limit")
	f.DurationVar(&o.shutdown, "shutdown-timeout", 10*time.Second,
		"time that watches and requests may take to end after a signal")
	f.DurationVar(&o.drainSpread, "drain-spread", 0, "period over which the ends of watches are spread at a shutdown")
	f.StringSliceVar(&o.trustedProxies, "trusted-proxies", nil,
		"`addresses`, such as 10.0.0.0/8, of proxies whose X-Forwarded-For names the client")
}

func (o *limitOptions) configure(s *watchserver.Server) error {
	for _, text := range o.trustedProxies {
		p, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); addrErr == nil {
			p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return cli.Usagef("--trusted-proxies %q: must be an address or a prefix, such as 10.0.0.0/8", text)
		}
		s.Access.TrustedProxies = append(s.Access.TrustedProxies, p)
	}
	s.Limits.Watches, s.Limits.WatchesPerClient = o.maxWatches()
	s.Limits.Requests, s.Limits.Writes, s.Limits.Memory = o.requests, o.writes, int64(o.memory)
	s.Limits.WriteTimeout, s.Timing.DrainSpread = o.writeTimeout, o.drainSpread
	o.limitRuntime()
	return nil
}

// limitRuntime sets Go's memory limit to nine tenths of the sum of --memory and the memory that
// watches may take. Without this limit, Go would keep the memory of a burst of requests. The
// environment variable GOMEMLIMIT takes precedence.
func (o *limitOptions) limitRuntime() {
	watches, _ := o.maxWatches()
	if o.memory <= 0 || watches <= 0 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	memory := min(int64(o.memory), 1<<60)
	total := memory + min(max(int64(watches)*watchMemory, memory), 1<<60)
	debug.SetMemoryLimit(max(total/10*9, minRuntime))
}

// minRuntime is the memory that the program needs in any case. The memory limit is never lower.
const minRuntime = 128 << 20

// watchMemory is an upper bound on the memory of an idle watch. By default, the limit of watches is
// --memory divided by watchMemory, so that idle watches together take no more than --memory.
const watchMemory = 16 << 10

// maxWatches returns the limits of watches. By default one client may open half of the watches,
// which leaves the other half to other clients. The limits of requests work in the same way.
func (o *limitOptions) maxWatches() (all, perClient int) {
	all, perClient = o.watches, o.watchesPerClient
	if all == 0 && o.memory > 0 {
		all = int(o.memory / watchMemory)
	}
	if perClient == 0 && all > 0 {
		perClient = (all + 1) / 2
	}
	return all, perClient
}

// reservedFiles is the number of open files that the limit of connections leaves to the store, its
// peers, probes and metrics.
const reservedFiles = 256

// maxConnections returns the limit of connections, or 0 if there is none.
func (o *limitOptions) maxConnections() int64 {
	if o.connections != 0 {
		return max(int64(o.connections), 0)
	}
	files := maxOpenFiles()
	return max(files-reservedFiles, files/2)
}

// defaultMemory returns half of the memory limit of this process's cgroup, or 1 GiB if there is no
// limit.
func defaultMemory() int64 {
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// Version 1 of cgroups has a number near 2^63 for no limit.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && n > 0 && n < 1<<50 {
			return n / 2
		}
	}
	return watchserver.DefaultMemory
}
