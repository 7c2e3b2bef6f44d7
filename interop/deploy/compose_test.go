package deploy

import (
	"bytes"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"go.yaml.in/yaml/v3"
)

const composeFolder = folder + "/compose"

// A composeFile has the elements of the Compose format that our compose.yaml uses.
type composeFile struct {
	Name     string
	Services map[string]*composeService
	Networks map[string]struct {
		IPAM struct {
			Config []struct{ Subnet string }
		}
	}
	Volumes map[string]struct{}
}

type composeService struct {
	Image           string
	Build           struct{ Context, Dockerfile string }
	Command         []string
	DependsOn       []string `yaml:"depends_on"`
	Restart         string
	StopGracePeriod string `yaml:"stop_grace_period"`
	ReadOnly        bool   `yaml:"read_only"`
	MemLimit        string `yaml:"mem_limit"`
	Environment     map[string]string
	Ports           []string
	Volumes         []string
	Networks        map[string]struct {
		IPv4Address string `yaml:"ipv4_address"`
	}
}

// serviceURL matches a URL of another service.
var serviceURL = regexp.MustCompile(`http://([a-z]\w*):\d+`)

// readStrictly decodes a YAML file of the compose folder. Unknown fields are errors.
func readStrictly(t *testing.T, name string, to any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(readCompose(t, name)))
	d.KnownFields(true)
	if err := d.Decode(to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := d.Decode(new(any)); err != io.EOF {
		t.Errorf("%s: got %v after the first document, want the end", name, err)
	}
}

func readCompose(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(composeFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestComposeFileFitsTogether checks that services refer only to services and files that exist.
func TestComposeFileFitsTogether(t *testing.T) {
	var c composeFile
	readStrictly(t, "compose.yaml", &c)
	for _, want := range []string{
		"etcd1", "etcd2", "etcd3", "server1", "server2", "relay", "nginx", "prometheus",
		"grafana",
	} {
		if c.Services[want] == nil {
			t.Errorf("there is no service %s", want)
		}
	}
	for name, s := range c.Services {
		for _, other := range s.DependsOn {
			if c.Services[other] == nil {
				t.Errorf("%s depends on %s, which does not exist", name, other)
			}
		}
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			_, named := c.Volumes[source]
			// The user writes these two files.
			secret := source == "./tokens" || source == "./relay-token"
			if _, err := os.Stat(filepath.Join(composeFolder, source)); !named && !secret && err != nil {
				t.Errorf("%s: there is neither a volume nor a file %s", name, source)
			}
		}
		if s.Build.Dockerfile != "" {
			if _, err := os.Stat(filepath.Join(composeFolder, s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Error(err)
			}
		}
		for _, m := range serviceURL.FindAllStringSubmatch(strings.Join(s.Command, " "), -1) {
			if c.Services[m[1]] == nil {
				t.Errorf("%s: there is no service %s", name, m[1])
			}
		}
	}
	if !strings.HasPrefix(readCompose(t, "compose.yaml"), "# Untested:") {
		t.Error("the file does not say that it is untested")
	}
}

func TestComposeArgumentsAreAccepted(t *testing.T) {
	var c composeFile
	readStrictly(t, "compose.yaml", &c)
	for name, s := range c.Services {
		switch {
		case s.Image == "listwatch":
			checkArguments(t, name, s.Command)
		case strings.HasPrefix(name, "etcd"):
			f, config := flag.NewFlagSet(name, flag.ContinueOnError), embed.NewConfig()
			config.AddFlags(f)
			if err := f.Parse(s.Command[1:]); err != nil || f.NArg() > 0 {
				t.Errorf("%s: %v, %q", name, err, f.Args())
			}
			if want := c.Services["etcd1"].Image; s.Image != want {
				t.Errorf("%s has the image %s, and etcd1 %s", name, s.Image, want)
			}
		}
	}
}

// checkArguments checks the arguments of a service with listwatch --print-config, which does not
// start the server.
func checkArguments(t *testing.T, service string, args []string) {
	t.Helper()
	args = append(slices.Clone(args), "--print-config")
	for i, arg := range args {
		args[i] = strings.Replace(arg, "/etc/listwatch/server.yaml", composeFolder+"/server.yaml", 1)
	}
	out, err := exec.CommandContext(t.Context(), program(t, "listwatch"), args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", service, err, out)
	}
	if args[0] != "serve" {
		return
	}
	var config struct{ Etcd []string }
	if err := yaml.Unmarshal(out, &config); err != nil {
		t.Error(err)
	}
	if want := []string{
		"http://etcd1:2379", "http://etcd2:2379",
		"http://etcd3:2379",
	}; !slices.Equal(config.Etcd, want) {
		t.Errorf("%s uses etcd at %v, want %v", service, config.Etcd, want)
	}
}

// TestComposeNginxIsValid also checks that the location in nginx.conf is the same as in
// docs/operations.md.
func TestComposeNginxIsValid(t *testing.T) {
	need(t, "nginx")
	config, dir := readCompose(t, "nginx.conf"), t.TempDir()
	location := func(config string) string {
		_, config, _ = strings.Cut(config, "location / {")
		config, _, _ = strings.Cut(config, "}")
		return config
	}
	if got, want := location(config), location(readSetup(t).file(t, "nginx.conf")); got != want || got == "" {
		t.Errorf("nginx.conf has the location\n%s\nand %s has\n%s", got, operations, want)
	}
	// Replace the names of the servers, which exist only in the network of the containers, and the
	// folders of nginx, which may belong to root.
	config = strings.NewReplacer("server1:", "127.0.0.1:", "server2:", "127.0.0.1:", "http {", "pid pid; http {"+
		"client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;").Replace(config)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "nginx", "-t", "-p", dir, "-c", "nginx.conf", "-e",
		"stderr").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestComposePrometheusIsValid lets promtool check the configuration with the alerts.
func TestComposePrometheusIsValid(t *testing.T) {
	need(t, "promtool")
	alerts, err := filepath.Abs(folder + "/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := readCompose(t, "prometheus.yml")
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, []byte(strings.Replace(config, "/etc/prometheus/alerts.yml", alerts, 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "promtool", "check", "config", file).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("1 rule files found")) {
		t.Errorf("%v\n%s", err, out)
	}
	for _, target := range []string{
		"server1:9464", "server2:9464", "relay:9464", "etcd1:2379", "etcd2:2379",
		"etcd3:2379",
	} {
		if !strings.Contains(config, target) {
			t.Errorf("Prometheus does not read the metrics of %s", target)
		}
	}
}

// TestComposeGrafanaFindsTheDashboard checks the files that configure Grafana at its start.
func TestComposeGrafanaFindsTheDashboard(t *testing.T) {
	var c composeFile
	readStrictly(t, "compose.yaml", &c)
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool `yaml:"isDefault"`
			JSONData                     struct {
				ManageAlerts bool `yaml:"manageAlerts"`
			} `yaml:"jsonData"`
		}
	}
	readStrictly(t, "grafana/datasources.yaml", &sources)
	if s := sources.Datasources; len(s) != 1 || s[0].URL != "http://prometheus:9090" || s[0].Type != "prometheus" {
		t.Errorf("got the data sources %+v", s)
	}
	var dashboards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type string
			Options    struct{ Path string }
		}
	}
	readStrictly(t, "grafana/dashboards.yaml", &dashboards)
	mounts := strings.Join(c.Services["grafana"].Volumes, "\n")
	if want := "../grafana/listwatch.json:" + dashboards.Providers[0].Options.Path +
		"/listwatch.json:ro"; !strings.Contains(mounts, want) {
		t.Errorf("the dashboard is not where the provider looks: want %s in\n%s", want, mounts)
	}
}
