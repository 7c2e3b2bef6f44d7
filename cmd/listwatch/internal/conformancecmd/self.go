package conformancecmd

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/mutants"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/conformance/report"
	"github.com/listwatch/listwatch/conformance/robustness"
	"github.com/spf13/cobra"
)

// selfOptions are the flags of conformance self.
type selfOptions struct {
	suiteOptions
	mutants   bool
	faults    time.Duration
	histories string
}

func newConformanceSelf() *cobra.Command {
	var o selfOptions
	cmd := &cobra.Command{
		Use:   "self",
		Short: "Hold this program's server and client to the protocol, and the suite to account",
		Long: `Hold the server and the client that are built into this program to the protocol, and show that the suite would notice what is wrong.

After the cases come the mutants, which are that server or client with one defect each: the cases about a defect must fail. Then comes a system under
faults: connections are reset, cut, stalled and dripped, the server is killed, drained and started again, history is compacted away, and all that the
watchers saw is held to the guarantees of a watch. The report has the figures of all three. It takes about a minute.

With --run or --skip there are cases alone, unless --mutants or --faults says otherwise.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.run)+len(o.skip) > 0 {
				o.mutants = o.mutants && cmd.Flags().Changed("mutants")
				if !cmd.Flags().Changed("faults") {
					o.faults = 0
				}
			}
			return o.conform(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.mutants, "mutants", true, "try the mutants")
	f.DurationVar(&o.faults, "faults", 4*time.Second, "how long everything goes wrong; zero: not at all")
	f.StringVar(&o.histories, "histories", "", "directory to keep what the watchers saw in, for listwatch conformance check")
	o.addFlags(f)
	return cmd
}

func (o *selfOptions) conform(ctx context.Context, out io.Writer) error {
	all, err := o.options("")
	if err != nil {
		return err
	}
	if o.faults < 0 {
		return cli.Usagef("--faults %v: want a time, or zero", o.faults)
	}
	t := reference.New("listwatch", reference.Interceptors{})
	t.Patience = o.timeout
	return o.execute(ctx, t, all, []string{"listwatch", "conformance", "self"}, out, o.runSelfTests)
}

// tryHard tries the mutants and the faults.
func (o *selfOptions) runSelfTests(ctx context.Context, r *conformance.Report, p *report.Progress) (err error) {
	begun := time.Now()
	defer func() { r.Seconds += time.Since(begun).Seconds() }()
	if o.mutants {
		if r.Mutants, err = mutants.Run(ctx, p.AddMutant); err != nil {
			return fmt.Errorf("mutants: %w", err)
		}
	}
	if o.faults == 0 {
		return nil
	}
	p.Message("faults", fmt.Sprintf("at least %v of them", o.faults))
	if r.Robustness, err = robustness.Run(ctx, robustness.Options{Seed: o.seed, MinDuration: o.faults}); err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	if o.histories == "" {
		return nil
	}
	file, err := r.Robustness.History.Save(o.histories, fmt.Sprintf("faults-%d", r.Robustness.Report.Meta.Seed))
	if err != nil {
		return err
	}
	r.Notes = append(r.Notes, fmt.Sprintf("what the watchers saw under faults is in %s; listwatch conformance check %s judges it again", file, o.histories))
	return nil
}
