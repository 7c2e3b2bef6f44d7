package doctorcmd

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/tableflag"
	"github.com/listwatch/listwatch/store/postgres"
)

// postgresOptions contains the flags about tables of PostgreSQL, which serve has, too.
type postgresOptions struct {
	dsn         string
	publication string
	documents   string
	tables      []string
	writable    bool
}

func (o *postgresOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.dsn, "postgres", "", "`URL` of a PostgreSQL database to examine, instead of a collection")
	f.StringVar(&o.publication, "postgres-publication", postgres.DefaultPublication, "`publication` of the tables")
	f.StringVar(&o.documents, "postgres-documents", "", "`table` for the objects of all resources, as for serve")
	f.BoolVar(&o.writable, "writable", false, "also examine whether the role may write each --table")
	f.StringArrayVar(&o.tables, "table", nil, tableflag.Usage)
}

var verdicts = map[postgres.Severity]verdict{postgres.Fine: fine, postgres.Note: note, postgres.Problem: problem}

// examine adds the findings about the database.
func (o *postgresOptions) examine(ctx context.Context, r *report) error {
	tables, err := tableflag.ParseAll(o.tables)
	if err != nil {
		return err
	}
	only := make([]postgres.Table, len(tables))
	for i, t := range tables {
		only[i] = t.Table
	}
	options := postgres.Options{Publication: o.publication, Documents: o.documents, Writable: o.writable}
	findings, err := postgres.Examine(ctx, o.dsn, options, only...)
	for _, f := range findings {
		found := finding{Check: f.Check, Verdict: verdicts[f.Severity], Text: strings.Join(strings.Fields(f.Text), " ")}
		if f.Remedy != "" {
			found.Remedies = []remedy{{"SQL", f.Remedy + ";"}}
		}
		r.add(found)
	}
	if err != nil && ctx.Err() == nil {
		r.add(finding{Check: "connection", Verdict: problem, Text: cli.OneLine(err)})
		return nil
	}
	return err
}
