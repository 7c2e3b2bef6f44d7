package benchcmd

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
)

// options contains the flags of bench.
type options struct {
	remote.Connection
	namespace string
	watchers  int
	objects   int
	rate      float64
	size      cli.ByteSize
	duration  time.Duration
	timeout   time.Duration
	template  string
	readOnly  bool
	output    string
	html      string
}

func (o *options) addFlags(f *pflag.FlagSet) {
	o.AddFlags(f)
	f.StringVarP(&o.namespace, "namespace", "n", "",
		"`namespace` of the written objects, and of the watches if the argument is a resource; if empty, the namespace in the URL, or default")
	f.StringVar(&o.Transport, "transport", "auto",
		"`transports`, which are measured in turn: auto, chunked, h2 or websocket, separated by commas")
	f.StringVar(&o.Framing, "framing", "json", "`framing` of the events: json, cbor, sse, seq or prefixed")
	f.IntVar(&o.watchers, "watchers", 100, "`number` of watchers")
	f.IntVar(&o.objects, "objects", 10, "`number` of objects to create; the writes update them in turn")
	f.Float64Var(&o.rate, "rate", 50, "writes per `second`; 0 means as many as possible")
	f.Var(&o.size, "size", "`size` of an object, without what the server adds")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "`duration` of the writes for each transport")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "`time` without any progress after which the command gives up")
	f.StringVar(&o.template, "template", "", "JSON `file` with an object whose spec and other members are written, too")
	f.BoolVar(&o.readOnly, "read-only", false,
		"do not write; measure the start of the watches and the events of other writers")
	f.StringVarP(&o.output, "output", "o", "", "output `format`: json; if empty, a table")
	f.StringVar(&o.html, "html", "", "write a page with the results and plots to this `file`")
}

// maxSize is the largest size of an object. bench fills objects with a long annotation, and
// Kubernetes limits all annotations of an object together to 256 KiB.
const maxSize = 255 << 10

// check returns a usage error if a flag is invalid.
func (o *options) check() error {
	switch {
	case o.watchers < 1:
		return cli.Usagef("--watchers %d: must be a positive integer", o.watchers)
	case o.objects < 1:
		return cli.Usagef("--objects %d: must be a positive integer", o.objects)
	case !(o.rate >= 0) || o.rate > 1e6:
		return cli.Usagef("--rate %v: must be between 0 and 1000000", o.rate)
	case o.size < 0 || o.size > maxSize:
		return cli.Usagef("--size %s: must be between 0 and %d bytes", &o.size, maxSize)
	case o.duration <= 0:
		return cli.Usagef("--duration %v: must be positive", o.duration)
	case o.timeout <= 0:
		return cli.Usagef("--timeout %v: must be positive", o.timeout)
	case o.output != "" && o.output != "json":
		return cli.Usagef("-o %q: must be json", o.output)
	}
	return nil
}
