package config

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

// testFlags are flags of all types that the commands have.
type testFlags struct {
	*pflag.FlagSet
	Options
	addr, prefix string
	insecure     bool
	max          int
	age          time.Duration
	memory       cli.ByteSize
	origins      []string
	proxies      []string
}

func newFlags(args ...string) *testFlags {
	f := &testFlags{FlagSet: pflag.NewFlagSet("test", pflag.ContinueOnError), memory: 1 << 30}
	f.StringVar(&f.addr, "addr", "127.0.0.1:8080", "")
	f.StringVar(&f.prefix, "etcd-prefix", "/registry", "")
	f.BoolVar(&f.insecure, "insecure", false, "")
	f.IntVar(&f.max, "max-watches", 0, "")
	f.DurationVar(&f.age, "history-age", 5*time.Minute, "")
	f.Var(&f.memory, "memory", "")
	f.StringArrayVar(&f.origins, "allow-origin", nil, "")
	f.StringSliceVar(&f.proxies, "trusted-proxies", nil, "")
	f.AddFlags(f.FlagSet)
	if err := f.Parse(args); err != nil {
		panic(err)
	}
	return f
}

const full = `# a comment
addr: ":80"
etcd-prefix: /registry
insecure: true
max-watches: 7
history-age: 1h0m0s
memory: 256MiB
allow-origin: ["http://a,b", "x: y"]
trusted-proxies: [10.0.0.0/8, 192.0.2.1]
`

func TestFileSetsFlagsOfAllTypes(t *testing.T) {
	f := newFlags("--max-watches", "9")
	if err := parse([]byte(full), f.FlagSet); err != nil {
		t.Fatal(err)
	}
	if f.addr != ":80" || !f.insecure || f.age != time.Hour || f.memory != 256<<20 ||
		strings.Join(f.origins, " ") != "http://a,b x: y" || len(f.proxies) != 2 {
		t.Errorf("got %+v, want the values of the file", f)
	}
	if f.max != 9 {
		t.Errorf("got max-watches %d, want that of the command line", f.max)
	}
	// A flag counts as set if the file has another value than the default.
	for name, want := range map[string]bool{"etcd-prefix": false, "addr": true, "allow-origin": true} {
		if got := f.Changed(name); got != want {
			t.Errorf("--%s counts as set: %t, want %t", name, got, want)
		}
	}
}

func TestPrintedConfigIsAccepted(t *testing.T) {
	for _, text := range []string{
		"", full, "addr: 'null'\nallow-origin: ['true', '', '1']",
		"addr: |-\n  two\n  lines\nhistory-age: -1ns",
	} {
		f := newFlags()
		if err := parse([]byte(text), f.FlagSet); err != nil {
			t.Fatal(err)
		}
		var first, second strings.Builder
		if err := write(f.FlagSet, &first); err != nil {
			t.Fatal(err)
		}
		again := newFlags()
		if err := parse([]byte(first.String()), again.FlagSet); err != nil {
			t.Fatalf("%s: %v", first.String(), err)
		}
		if err := write(again.FlagSet, &second); err != nil || second.String() != first.String() {
			t.Errorf("got\n%s, %v\nwant\n%s", second.String(), err, first.String())
		}
		if strings.Join(again.origins, "|") != strings.Join(f.origins, "|") || again.addr != f.addr ||
			again.age != f.age {
			t.Errorf("got %+v, want %+v", again, f)
		}
	}
}

func TestConfigErrorsNameTheKey(t *testing.T) {
	for text, want := range map[string]string{
		"adr: x":                    `line 1: unknown key "adr": did you mean addr?`,
		"\nmax_watches: 1":          `line 2: unknown key "max_watches": did you mean max-watches?`,
		"--memory: 1":               "did you mean memory?",
		"colour-of-the-sky: blue":   "must be the name of a flag without dashes; --print-config lists them",
		"config: other.yaml":        `unknown key "config"`,
		"print-config: true":        `unknown key "print-config"`,
		"addr: a\naddr: b":          "line 2: addr is repeated",
		"max-watches: many":         `line 1: max-watches: invalid argument "many"`,
		"memory: 1XB":               "unknown unit",
		"insecure:":                 "insecure: must be a single value",
		"addr: [a]":                 "addr: must be a single value",
		"allow-origin: a":           "allow-origin: must be a list, such as [a, b]",
		"allow-origin: [a, {b: c}]": "must be a text",
		"- addr":                    "must be a mapping",
		"addr: a\n---\naddr: b":     "must contain one YAML document",
		"addr: [":                   "yaml",
		"trusted-proxies: {a: b}":   "must be a list",
		"? [complex, key]\n: value": "unknown key",
	} {
		err := parse([]byte(text), newFlags().FlagSet)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(full)
	f.Add("addr: &a x\netcd-prefix: *a\n")
	f.Fuzz(func(t *testing.T, text string) {
		flags := newFlags()
		if parse([]byte(text), flags.FlagSet) != nil {
			return
		}
		var out strings.Builder
		if err := write(flags.FlagSet, &out); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		again := newFlags()
		if err := parse([]byte(out.String()), again.FlagSet); err != nil {
			t.Fatalf("%q is printed as %q: %v", text, out.String(), err)
		}
		if again.addr != flags.addr || again.memory != flags.memory ||
			strings.Join(again.proxies, "|") != strings.Join(flags.proxies, "|") {
			t.Errorf("%q is printed as %q, which means something else", text, out.String())
		}
	})
}
