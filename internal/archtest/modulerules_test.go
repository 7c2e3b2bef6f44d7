package archtest

import "slices"

const (
	interopModule = "interop"
	rivalsModule  = "benchmarks/rivals"
	toolsModule   = "tools"
)

// A moduleRule lists the modules that a module of the repository may require. Two of the lists,
// others and heavy, hold import paths; each path also covers the paths below it.
type moduleRule struct {
	dir      string   // the directory of the module
	ours     []string // the directories of the required modules of this repository
	others   []string // modules of other repositories
	heavy    []string // modules from the variable heavy, which may also be required indirectly
	anything bool     // no restriction
}

// heavy modules bring many other modules with them. A user must get them only together with the
// feature that needs them.
var heavy = []string{
	"go.etcd.io/etcd", "google.golang.org/grpc", "google.golang.org/protobuf", "go.uber.org/zap",
	"github.com/spf13/cobra", "github.com/spf13/pflag", "k8s.io", "sigs.k8s.io",
}

// apimachinery is Kubernetes' code for options, server-side apply and errors.
var apimachinery = []string{"k8s.io", "sigs.k8s.io", "google.golang.org/protobuf"}

var etcdClient = []string{"go.etcd.io/etcd", "google.golang.org/grpc", "google.golang.org/protobuf", "go.uber.org/zap"}

// moduleRules has a rule for each module of the repository.
var moduleRules = []moduleRule{
	{
		dir: ".",
		others: []string{
			"github.com/gorilla/websocket", "nhooyr.io/websocket", "golang.org/x/net", "golang.org/x/sys",
			"github.com/tidwall/btree", "github.com/klauspost/compress", "go.etcd.io/bbolt",
			"github.com/go-json-experiment/json",
			// Only tests need these.
			"pgregory.net/rapid", "github.com/google/go-cmp", "github.com/fxamacker/cbor",
		},
	},
	{
		dir:   "store/etcd",
		ours:  []string{"."},
		heavy: etcdClient,
	},
	{
		dir:    "store/postgres",
		ours:   []string{"."},
		others: []string{"github.com/go-json-experiment/json", "github.com/jackc/pgx"},
	},
	{
		dir:    "kubeapi",
		ours:   []string{"."},
		others: []string{"github.com/evanphx/json-patch", "go.yaml.in/yaml", "github.com/google/go-cmp"},
		heavy:  apimachinery,
	},
	{
		dir:    "kubeapi/kubetest",
		ours:   []string{".", "kubeapi"},
		others: []string{"gopkg.in/evanphx/json-patch.v4", "sigs.k8s.io/yaml"},
		// Kubernetes' CEL library is part of a module with commands, and its webhook client can use
		// proxies over gRPC.
		heavy: slices.Concat([]string{
			"github.com/spf13/cobra", "github.com/spf13/pflag", "google.golang.org/grpc",
		}, apimachinery),
	},
	{
		dir:    "conformance",
		ours:   []string{"."},
		others: []string{"github.com/google/go-cmp", "golang.org/x/net", "go.yaml.in/yaml"},
	},
	{
		dir:    "observe",
		ours:   []string{"."},
		others: []string{"github.com/prometheus/client_golang", "go.opentelemetry.io/otel"},
		heavy:  []string{"google.golang.org/protobuf"}, // the Prometheus client needs it
	},
	{
		dir:    "oidc",
		ours:   []string{"."},
		others: []string{"github.com/coreos/go-oidc/v3"},
	},
	{
		dir:  "cmd/listwatch",
		ours: []string{".", "conformance", "kubeapi", "observe", "oidc", "store/etcd", "store/postgres"},
		others: []string{
			"github.com/coreos/go-systemd/v22", "go.yaml.in/yaml", "golang.org/x/term",
			"golang.org/x/time",
		},
		heavy: slices.Concat([]string{"github.com/spf13/cobra", "github.com/spf13/pflag"}, etcdClient, apimachinery),
	},
	{
		dir:  "examples",
		ours: []string{".", "conformance", "observe", "store/postgres"},
		others: []string{
			"github.com/go-chi/chi", "github.com/jackc/pgx", "github.com/nats-io",
			"github.com/prometheus/client_golang",
			"github.com/rs/cors", "github.com/vmihailenco/msgpack",
			"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp",
			"go.opentelemetry.io/otel", "golang.org/x/net", "modernc.org/sqlite",
		},
		heavy: []string{"google.golang.org/protobuf"}, // the Prometheus client needs it
	},
	{dir: interopModule, anything: true},
	{dir: rivalsModule, anything: true},
	{dir: toolsModule, anything: true},
}

// internalImports lists the internal packages of the root module that nested modules import outside
// of tests. A module that imports one of them works only with the same release of the root module,
// so all modules are released together (RELEASE.md). The list should become shorter.
var internalImports = map[string][]string{
	"store/etcd":     {"internal/batchread", "internal/history", "internal/hooks", "internal/revision"},
	"store/postgres": {"internal/hooks", "internal/rawjson"},
	"kubeapi": {
		"internal/access", "internal/apihttp", "internal/budget", "internal/history",
		"internal/httpbody", "internal/rawjson", "internal/rest",
	},
	// A test fixture wants a network in memory and the bytes of objects.
	"kubeapi/kubetest": {"internal/apihttp", "internal/memnet", "internal/rawjson", "internal/rest"},
	"observe":          nil,
	"oidc":             nil,
	"conformance": {
		"internal/compress", "internal/h2peer", "internal/h2websocket", "internal/memnet", "internal/racetest",
		"internal/reflector",
	},
	"cmd/listwatch": {"internal/apihttp", "internal/httpbody", "internal/rest", "internal/savedcopy"},
	// The examples show what other projects can write. Their tests are checked, too.
	"examples": nil,
	"interop":  {"internal/httpbody", "internal/ports", "internal/testbuild"},
	// The comparison with rivals uses only exported names, because users have no others.
	"benchmarks/rivals": nil,
}
