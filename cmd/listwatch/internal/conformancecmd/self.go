package conformancecmd

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/conformance/report"
	"github.com/listwatch/listwatch/conformance/robustness"
	"github.com/spf13/cobra"
)

// selfOptions contains the flags of conformance self.
type selfOptions struct {
	suiteOptions
	faults    time.Duration
	histories string
}

func newConformanceSelf() *cobra.Command {
	var o selfOptions
	cmd := &cobra.Command{
		Use:   "self",
		Short: "Test this program's server and client, also under faults",
		Long: `Test this program's own server and client.

After the cases, a system runs under faults: connections are reset, cut,
stalled and slowed down, and the server is killed, drained and compacted,
while a checker verifies what all watchers see. The run takes about half a
minute.

With --run or --skip, only the cases run, unless --faults is set.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.run)+len(o.skip) > 0 && !cmd.Flags().Changed("faults") {
				o.faults = 0
			}
			return o.conform(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.DurationVar(&o.faults, "faults", 4*time.Second, "how long to inject faults; 0 means not at all")
	f.StringVar(&o.histories, "histories", "", "`directory` for the recorded history, for listwatch conformance check")
	o.addFlags(f)
	return cmd
}

func (s *selfOptions) conform(ctx context.Context, out io.Writer) error {
	all, err := s.options("")
	if err != nil {
		return err
	}
	if s.faults < 0 {
		return cli.Usagef("--faults %v: must not be negative", s.faults)
	}
	t := reference.New("listwatch", reference.Interceptors{})
	t.Patience = s.timeout
	return s.execute(ctx, t, all, []string{"listwatch", "conformance", "self"}, out, s.injectFaults)
}

// injectFaults runs the robustness test.
func (s *selfOptions) injectFaults(ctx context.Context, r *conformance.Report, p *report.Progress) (err error) {
	begun := time.Now()
	defer func() { r.Seconds += time.Since(begun).Seconds() }()
	if s.faults == 0 {
		return nil
	}
	p.Message(fmt.Sprintf("injecting faults for at least %v", s.faults))
	if r.Robustness, err = robustness.Run(ctx, robustness.Options{Seed: s.seed, MinDuration: s.faults}); err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	if s.histories == "" {
		return nil
	}
	file, err := r.Robustness.History.Save(s.histories, fmt.Sprintf("faults-%d", r.Robustness.Report.Meta.Seed))
	if err != nil {
		return err
	}
	r.Notes = append(r.Notes,
		fmt.Sprintf("the history of the run under faults is in %s; listwatch conformance check %s verifies it again",
			file, s.histories))
	return nil
}
