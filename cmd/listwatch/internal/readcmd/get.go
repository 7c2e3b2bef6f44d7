package readcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/spf13/cobra"
)

// NewGet returns the command listwatch get.
func NewGet() *cobra.Command {
	var s collectionFlags
	cmd := &cobra.Command{
		Use:   "get (URL | RESOURCE [NAME])",
		Short: "List the objects of a collection",
		Long:  "List the objects of a collection.\n\n" + collectionHelp,
		Args:  cli.Args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := s.parse(cmd.Context(), args, cmd.Flags())
			if err != nil {
				return err
			}
			return s.list(cmd.Context(), t, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	s.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&s.version, "resource-version", "",
		"list a state at least as new as this `version`; if empty, the newest")
	return cmd
}

func (c *collectionFlags) list(ctx context.Context, t *collection, out, notes io.Writer) error {
	source, err := c.Remote(t.url)
	if err != nil {
		return err
	}
	defer source.Close()
	page, err := source.List(ctx, t.query)
	if err != nil {
		return remote.WithAdvice(err)
	}
	if t.query.Name != "" && len(page.Items) == 0 {
		return fmt.Errorf("%s %q not found", t.description, t.query.Name)
	}
	w := bufio.NewWriter(out)
	switch c.output {
	case "json":
		if err := writeJSON(w, page, t.query.Name != ""); err != nil {
			return err
		}
	case "name":
		for _, o := range page.Items {
			fmt.Fprintln(w, o.Key)
		}
	default:
		if len(page.Items) == 0 {
			fmt.Fprintln(notes, "no objects found")
		}
		writeTable(w, page.Items, t.anyNamespace, c.output == "wide", time.Now())
	}
	return w.Flush()
}

// writeJSON writes the only object of page if single is true, and otherwise a List, as
// kubectl get -o json does. The bytes of the objects are unchanged.
func writeJSON(w *bufio.Writer, page listwatch.Page, single bool) error {
	if single {
		w.Write(page.Items[0].Data)
		return w.WriteByte('\n')
	}
	version, err := json.Marshal(page.Version.String())
	if err != nil {
		return err
	}
	fmt.Fprintf(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":%s},"items":[`, version)
	for i, o := range page.Items {
		if i > 0 {
			w.WriteByte(',')
		}
		w.Write(o.Data)
	}
	_, err = w.WriteString("]}\n")
	return err
}
