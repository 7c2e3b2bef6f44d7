package readcmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/listwatch/listwatch/internal/rest"
	"github.com/listwatch/listwatch/meter"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// watchOptions contains the flags of watch.
type watchOptions struct {
	collectionFlags
	exitAfter int
	bookmarks bool
	informer  bool
	persist   string
	conflate  string
	waste     time.Duration
}

// NewWatch returns the command listwatch watch.
func NewWatch() *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch (URL | RESOURCE [NAME])",
		Short: "Watch a collection",
		Long: `Watch a collection: print its objects as ADDED events, and then every change
until interrupted. If the connection breaks, the watch resumes without lost or
repeated events. If the server no longer has the history since then, the
command prints the difference to the state that it has printed: ADDED for each
object that was created or changed, DELETED for each one that is gone.

With --persist, the command saves its position in a file, and the next run
begins with the difference to what this run has printed. After a crash, it may
print some changes again. If the server does not know the difference, the
command prints the whole state and says so on stderr.

With --informer, the command keeps a local store and prints its state: the
number of objects, the version, and the lag behind the server. The version of
an idle collection can lag behind for up to a minute while other collections
change, until a bookmark arrives.

With --waste, the command prints no events. After the given time it prints how
many events and bytes each projection, conflation and selector would have saved,
and the parameter to use. It computes this from the events that it received.

` + collectionHelp,
		Args: cli.Args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkWaste(cmd.Flags()); err != nil {
				return err
			}
			if o.exitAfter < 0 {
				return cli.Usagef("--exit-after %d: must be a non-negative integer", o.exitAfter)
			}
			if err := o.checkInformer(cmd.Flags()); err != nil {
				return err
			}
			t, err := o.parse(cmd.Context(), args, cmd.Flags())
			if err != nil {
				return err
			}
			if t.query.Conflate, err = rest.ParseConflation(cmp.Or(o.conflate, t.conflate)); err != nil {
				return cli.UsageError(err)
			}
			if o.persist != "" && t.query.Start != listwatch.StartNewest {
				return cli.Usagef("--persist: not allowed with a resource version")
			}
			return o.watch(cmd.Context(), t, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.addFlags(f)
	f.StringVar(&o.version, "resource-version", "",
		"print only changes after this `version`; if empty, start with the current objects")
	f.StringVar(&o.Transport, "transport", "auto", "`transport`: auto, chunked, h2 or websocket")
	f.StringVar(&o.Framing, "framing", "json", "`framing` of the events: json, cbor, sse, seq or prefixed")
	f.IntVar(&o.exitAfter, "exit-after", 0,
		"exit after this `number` of events, or of lines with --informer; 0 means never")
	f.BoolVar(&o.bookmarks, "bookmarks", false, "print bookmarks, too")
	f.StringVar(&o.conflate, "conflate", "",
		"print at most one state of each object in this `time`, such as 1s, at most 60s;\n"+
			"if empty, the one in the URL, and otherwise every state")
	f.StringVar(&o.persist, "persist", "",
		"`file` with the position, or with --informer the objects, so that the next run receives only what has changed")
	f.DurationVar(&o.waste, "waste", 0,
		"watch for this `time` and print what the watch receives in vain, with the parameters that avoid it")
	f.BoolVar(&o.informer, "informer", false, "print the state of a local store instead of the events")
	return cmd
}

// checkInformer refuses flags that do not apply to --informer.
func (o *watchOptions) checkInformer(f *pflag.FlagSet) error {
	for _, name := range []string{"resource-version", "bookmarks", "output"} {
		if o.informer && f.Changed(name) {
			return cli.Usagef("--%s does not apply to --informer", name)
		}
	}
	return nil
}

func (o *watchOptions) watch(ctx context.Context, t *collection, out, notes io.Writer) error {
	source, err := o.Remote(t.url)
	if err != nil {
		return err
	}
	defer source.Close()
	if o.waste > 0 {
		return o.watchWaste(ctx, t, source, out)
	}
	if o.informer {
		return o.watchInformer(ctx, t, source, out, notes)
	}
	source.Trace = &client.Trace{Lost: func(err error, wait time.Duration) { printLoss(notes, err, wait) }}
	f := &follower{
		source: source, query: t.query, out: bufio.NewWriter(out), output: o.output, bookmarks: o.bookmarks,
		left: cmp.Or(o.exitAfter, -1),
	}
	if o.persist != "" {
		f.file = &positionFile{path: o.persist, selection: t.key()}
	}
	err = f.run(ctx, notes)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // an interrupt is the normal way to end
	}
	if errors.Is(err, listwatch.Expired) {
		return fmt.Errorf("%w; the server no longer has the history since then: watch again without --resource-version",
			err)
	}
	return remote.WithAdvice(err)
}

// checkWaste refuses flags that do not apply to --waste, which needs all events of whole objects.
func (o *watchOptions) checkWaste(f *pflag.FlagSet) error {
	for _, name := range []string{"fields", "conflate", "informer", "persist", "exit-after", "bookmarks", "output"} {
		if o.waste != 0 && f.Changed(name) {
			return cli.Usagef("--%s does not apply to --waste", name)
		}
	}
	if o.waste < 0 {
		return cli.Usagef("--waste %v: must be a positive duration, such as 60s", o.waste)
	}
	return nil
}

func (o *watchOptions) watchWaste(ctx context.Context, t *collection, source listwatch.Source, out io.Writer) error {
	t.query.Bookmarks, t.query.InitialEvents = true, listwatch.InitialEventsYes
	w, err := source.Watch(ctx, t.query)
	if err != nil {
		return remote.WithAdvice(err)
	}
	defer w.Close()
	m := meter.Meter{EachMember: true}
	if err := m.Measure(ctx, w, o.waste); err != nil {
		return remote.WithAdvice(err)
	}
	return m.Report().Print(out)
}

// printLoss reports a lost connection. It prints nothing if the server has ended the watch because
// the maximum duration of the watch has passed.
func printLoss(notes io.Writer, err error, wait time.Duration) {
	if errors.Is(err, io.EOF) && wait < time.Second {
		return
	}
	what := "the server ended the watch"
	if !errors.Is(err, io.EOF) {
		what = "lost the connection: " + cli.OneLine(err)
	}
	fmt.Fprintf(notes, "listwatch: %s; retrying in %v\n", what, wait.Round(100*time.Millisecond))
}
