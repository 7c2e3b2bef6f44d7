// Package config reads the flags of a command from a YAML file, and prints flags as such a file.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

// Options contains the flags --config and --print-config, which a file cannot contain.
type Options struct {
	file  string
	print bool
}

// AddFlags adds the flags to f.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.file, "config", "",
		"YAML `file` with flags, such as addr: 127.0.0.1:8080; the command line overrides it")
	f.BoolVar(&o.print, "print-config", false, "print all flags as a file for --config, and exit")
}

// Apply sets the flags of f from the file, and prints all flags if --print-config is set. If done
// is true, the command must exit.
func (o *Options) Apply(f *pflag.FlagSet, out io.Writer) (done bool, err error) {
	if o.file != "" {
		data, err := os.ReadFile(o.file)
		if err != nil {
			return true, fmt.Errorf("--config: %w", err)
		}
		if err := parse(data, f); err != nil {
			return true, cli.Usagef("--config %s: %w", o.file, err)
		}
	}
	if !o.print {
		return false, nil
	}
	return true, write(f, out)
}

// allowed reports whether a file may contain the flag.
func allowed(f *pflag.Flag) bool {
	return f != nil && f.Name != "config" && f.Name != "print-config" && f.Name != "help"
}

// parse sets the flags that data contains, unless the command line has already set them.
func parse(data []byte, f *pflag.FlagSet) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil // only comments
		}
		return err
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return errors.New("must contain one YAML document")
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: must be a mapping from flags to values, such as addr: 127.0.0.1:8080", root.Line)
	}
	seen := make(map[string]bool)
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		flag := f.Lookup(key.Value)
		switch {
		case key.Kind != yaml.ScalarNode || !allowed(flag):
			return fmt.Errorf("line %d: unknown key %q: %s", key.Line, key.Value, suggest(key.Value, f))
		case seen[key.Value]:
			return fmt.Errorf("line %d: %s is repeated: list several values as [a, b]", key.Line, key.Value)
		}
		seen[key.Value] = true
		if flag.Changed {
			continue
		}
		if err := set(f, flag, value); err != nil {
			return fmt.Errorf("line %d: %s: %w", value.Line, key.Value, err)
		}
	}
	return nil
}

// set sets a flag, unless it already has the value. Setting a flag to its default would still mark
// it as set, and some flags may be set only together with another flag.
func set(f *pflag.FlagSet, flag *pflag.Flag, value *yaml.Node) error {
	list, isList := flag.Value.(pflag.SliceValue)
	switch {
	case isList && value.Kind == yaml.SequenceNode:
		var all []string
		for _, v := range value.Content {
			if v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
				return fmt.Errorf("line %d: must be a text", v.Line)
			}
			all = append(all, v.Value)
		}
		flag.Changed = len(all) > 0
		return list.Replace(all)
	case isList:
		return errors.New("must be a list, such as [a, b]")
	case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
		return errors.New("must be a single value")
	case value.Value == flag.Value.String():
		return nil
	}
	return f.Set(flag.Name, value.Value)
}

// suggest returns advice for an unknown key: the names of similar flags, or how to list all flags.
func suggest(key string, f *pflag.FlagSet) string {
	names := &cobra.Command{}
	f.VisitAll(func(flag *pflag.Flag) {
		if allowed(flag) {
			names.AddCommand(&cobra.Command{Use: flag.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	var similar []string
	for names.SuggestionsMinimumDistance <= 3 && len(similar) == 0 {
		similar = names.SuggestionsFor(strings.ReplaceAll(strings.TrimLeft(key, "-"), "_", "-"))
		names.SuggestionsMinimumDistance++
	}
	if len(similar) == 0 {
		return "must be the name of a flag without dashes; --print-config lists them"
	}
	return "did you mean " + strings.Join(similar, " or ") + "?"
}

// write prints all flags with their values.
func write(f *pflag.FlagSet, out io.Writer) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	f.VisitAll(func(flag *pflag.Flag) {
		if !allowed(flag) {
			return
		}
		value := &yaml.Node{}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			*value = yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
			for _, text := range list.GetSlice() {
				item := new(yaml.Node)
				item.SetString(text)
				value.Content = append(value.Content, item)
			}
		} else if kind := flag.Value.Type(); kind == "string" || kind == "text" {
			value.SetString(flag.Value.String())
		} else {
			*value = yaml.Node{Kind: yaml.ScalarNode, Value: flag.Value.String()}
		}
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: flag.Name}, value)
	})
	encoder := yaml.NewEncoder(out)
	if err := encoder.Encode(root); err != nil {
		return err
	}
	return encoder.Close()
}
