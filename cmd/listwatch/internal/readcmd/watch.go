package readcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// watchOptions are the flags of watch.
type watchOptions struct {
	collectionFlags
	exitAfter int
	bookmarks bool
	informer  bool
}

func NewWatch() *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch (URL | RESOURCE [NAME])",
		Short: "Follow the changes of a collection",
		Long: `Follow the changes of a collection: first what is there, as ADDED, then every change, until it is interrupted. Where the connection
breaks it is made anew, and nothing is lost or comes twice.

With --informer the events are kept in a local store, and what is shown is that store: how many objects it has, its version, and how far it is behind
the server. A collection in which nothing happens may be some versions behind, for up to a minute, while others of the server are written to:
then a bookmark says that nothing was missed.

` + collectionHelp,
		Args: cli.Args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.exitAfter < 0 {
				return cli.Usagef("--exit-after %d: want a number that is not negative", o.exitAfter)
			}
			if err := o.checkInformer(cmd.Flags()); err != nil {
				return err
			}
			t, err := o.parse(cmd.Context(), args, cmd.Flags())
			if err != nil {
				return err
			}
			return o.watch(cmd.Context(), t, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.addFlags(f)
	f.StringVar(&o.version, "resource-version", "", "show only what comes after it; empty: begin with the state")
	f.StringVar(&o.Transport, "transport", "auto", "auto, chunked, h2 or websocket")
	f.StringVar(&o.Framing, "framing", "json", "json, cbor, sse, seq or prefixed: how events travel")
	f.IntVar(&o.exitAfter, "exit-after", 0, "end after so many events, or lines of --informer; 0: never")
	f.BoolVar(&o.bookmarks, "bookmarks", false, "show bookmarks, too")
	f.BoolVar(&o.informer, "informer", false, "show a local store that follows the collection, in place of the events")
	return cmd
}

// checkInformer refuses what an informer has no use for.
func (o *watchOptions) checkInformer(f *pflag.FlagSet) error {
	for _, name := range []string{"resource-version", "bookmarks", "output"} {
		if o.informer && f.Changed(name) {
			return cli.Usagef("--%s can't be given with --informer, which shows its store, from the state on", name)
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
	if o.informer {
		return o.watchInformer(ctx, t, source, out, notes)
	}
	source.Trace = &client.Trace{Lost: func(err error, wait time.Duration) { printLoss(notes, err, wait) }}
	t.query.Bookmarks = o.bookmarks
	w, err := source.Watch(ctx, t.query)
	if err == nil {
		defer w.Close()
		err = o.print(ctx, w, out)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // an interrupt is how a watch ends
	}
	if errors.Is(err, listwatch.Expired) {
		return fmt.Errorf("%w; what came since can't be had: watch again, from the state", err)
	}
	return remote.WithAdvice(err)
}

// noteLoss tells of a break: without it, silence would look like quiet. That a server ends a watch when its time is up is no news.
func printLoss(notes io.Writer, err error, wait time.Duration) {
	if errors.Is(err, io.EOF) && wait < time.Second {
		return
	}
	what := "the server has ended the watch"
	if !errors.Is(err, io.EOF) {
		what = "the connection is lost: " + cli.OneLine(err)
	}
	fmt.Fprintf(notes, "listwatch: %s; trying again in %v\n", what, wait.Round(100*time.Millisecond))
}

// print writes events as they come, and what comes together at once.
func (o *watchOptions) print(ctx context.Context, w listwatch.Watcher, out io.Writer) error {
	buf := bufio.NewWriter(out)
	var batch [64]listwatch.Event
	for left := o.exitAfter; o.exitAfter == 0 || left > 0; {
		room := len(batch)
		if o.exitAfter > 0 {
			room = min(room, left)
		}
		n, err := w.Next(ctx, batch[:room])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range batch[:n] {
			writeEvent(buf, e, o.output, time.Now())
		}
		if err := buf.Flush(); err != nil {
			return err
		}
		left -= n
	}
	return nil
}
