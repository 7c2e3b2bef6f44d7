package archtest

// modulePath is the path of the root module. The tables name packages without it; "." is the root
// package.
const modulePath = "github.com/listwatch/listwatch"

// A layer is a set of packages. A package imports packages of lower layers only, never a sibling.
type layer struct {
	name string
	// packages are patterns of path.Match. A pattern that ends in "/..." also covers the packages
	// below. Together they count as one unit, and may import each other.
	packages []string
}

// layers holds all packages of all modules, the lowest layer first. A new package belongs here.
var layers = []layer{
	{"leaves", []string{
		"internal/archtest",
		"internal/atomicfile",
		"internal/batchread",
		"internal/browsertest",
		"internal/budget",
		"internal/compress",
		"internal/digest",
		"internal/expiry",
		"internal/h2peer",
		"internal/hooks",
		"internal/httpbody",
		"internal/httpheader",
		"internal/leaktest",
		"internal/memnet",
		"internal/models",
		"internal/ordered",
		"internal/pool",
		"internal/ports",
		"internal/racetest",
		"internal/rawjson",
		"internal/testbuild",
		"internal/timers",
		"internal/wire/frames",
		"js",
		"workqueue",
	}},
	{"HTTP servers for tests", []string{"internal/testhttp"}},
	{"the vocabulary", []string{"."}},
	{"helpers and a Source for tests, errors on the wire, saved copies, and parts of the log", []string{
		"internal/testkit", "listwatchtest", "kubestatus", "persist", "internal/departures", "internal/revision",
		"internal/sharedmaps",
	}},
	{
		"framings, the log and the reflector",
		[]string{
			"framing", "internal/eventqueue", "internal/govalue", "internal/history", "internal/reflector",
			"internal/savedcopy", "transport/internal/connio",
		},
	},
	{
		"caches, and the interfaces of transports and stores",
		[]string{"transport", "store", "typed", "watchcache", "transport/h2/internal/loop"},
	},
	{"the encoder of streams, and an encoding for tests", []string{"internal/wire", "internal/encodingtest"}},
	{
		"the parts that the WebSocket transports share",
		[]string{"transport/websocket/internal/wswatch", "internal/h2websocket"},
	},
	{"WebSocket libraries", []string{"transport/websocket/library"}},
	{"the parameters and verbs of requests", []string{"internal/rest"}},
	{"the HTTP side of servers", []string{"internal/apihttp"}},
	{"transports and stores", []string{
		"transport/*",
		"transport/websocket/*",
		"transport/websocket/gorilla",
		"transport/websocket/nhooyr",
		"store/*",
	}},
	{"server and client, and the meter of watches", []string{"watchserver", "client", "meter"}},
	{
		"reports of a server about a request, users, and their rights",
		[]string{"watchserver/echo", "oidc", "internal/access"},
	},
	{"users of Sources", []string{
		"informer", "relay", "crudserver", "internal/servertest", "internal/collectiontest",
		"internal/expirytest",
	}},
	{"users of informers", []string{"controller"}},
	{"Kubernetes' API, and relays of a whole API server", []string{"kubeapi/..."}},
	{"metrics, logs and spans", []string{"observe/*"}},
	{"the conformance suite", []string{"conformance/..."}},
	{"programs and benchmarks", []string{"benchmarks/...", "cmd/*/...", "examples", "examples/*/...", "tools/*"}},
	{"tests with other projects' programs", []string{"interop/..."}},
}

// A limit restricts the imports of some packages further than the layers do. From this repository,
// these packages may import only the packages in the second list.
type limit struct {
	packages []string
	only     []string
	reason   string
}

// leaves are the packages that any package may import.
var leaves = layers[0].packages

var limits = []limit{
	{
		layers[0].packages,
		nil,
		"a leaf imports no other package of this repository",
	},
	{
		[]string{"."},
		[]string{"internal/pool", "internal/rawjson"},
		"users of the vocabulary must not get anything else with it",
	},
	{
		[]string{"internal/history"},
		[]string{
			".", "internal/budget", "internal/departures", "internal/digest", "internal/ordered", "internal/rawjson",
			"internal/revision", "internal/sharedmaps", "internal/wire/frames",
		},
		"the log does not know the wire: transports put their frames into its caches",
	},
	{
		[]string{"internal/reflector", "informer"},
		append([]string{
			".", "internal/govalue", "internal/reflector", "internal/savedcopy", "internal/sharedmaps", "persist",
		}, leaves...),
		"the reflector and the informer work with any Source",
	},
	{
		[]string{"transport"},
		append([]string{".", "framing", "kubestatus", "transport/internal/connio"}, leaves...),
		"a transport carries frames and does not know histories, selections or stores",
	},
	{
		[]string{"transport/*", "transport/websocket/*", "transport/websocket/internal/wswatch"},
		append([]string{
			".", "framing", "kubestatus", "transport", "transport/internal/connio", "transport/h2/internal/loop",
			"transport/websocket/internal/wswatch",
			"transport/websocket/library", "internal/testhttp", "internal/h2websocket",
		}, leaves...),
		"a transport carries frames and does not know histories, selections or stores",
	},
	{
		[]string{"transport/websocket/gorilla", "transport/websocket/nhooyr"},
		[]string{"transport", "transport/websocket/library"},
		"an adapter of a WebSocket library needs exported names only",
	},
	{
		[]string{"transport/h2/internal/loop"},
		[]string{"transport/internal/connio"},
		"the connection loop serves any http.Handler",
	},
	{
		[]string{"typed"},
		append([]string{".", "internal/reflector"}, leaves...),
		"a typed collection works with any Store",
	},
	{
		[]string{"store"},
		append([]string{".", "internal/history", "internal/reflector"}, leaves...),
		"a store keeps objects and does not know transports",
	},
	{
		[]string{"store/*"},
		append([]string{
			".", "internal/departures", "internal/history", "internal/revision", "store", "typed",
			"watchcache",
		}, leaves...),
		"a store keeps objects and does not know transports",
	},
	{
		[]string{"watchserver"},
		append([]string{
			".", "framing", "internal/apihttp", "internal/eventqueue", "internal/rest", "internal/wire",
			"internal/wire/frames", "transport",
			"transport/*",
		}, leaves...),
		"a watch server serves any Source and does not know stores",
	},
	{
		[]string{"watchcache"},
		append([]string{".", "internal/history", "internal/revision"}, leaves...),
		"its owner brings the data: a cache knows neither stores nor transports",
	},
}

// A dependency is a module of another repository, or a part of such a module, together with the
// only packages that may import it.
type dependency struct {
	prefix   string
	packages []string
	reason   string
}

// dependencies lists all imports of other repositories outside of tests. The first entry whose
// prefix matches an import applies. The packages of interop may import anything.
var dependencies = []dependency{
	{
		"github.com/gorilla/websocket",
		[]string{"transport/websocket/gorilla", "benchmarks/rivals/internal/servers"},
		"transport.Sender and transport.Receiver hide the WebSocket libraries",
	},
	{
		"nhooyr.io/websocket",
		[]string{"transport/websocket/nhooyr"},
		"transport.Sender and transport.Receiver hide the WebSocket libraries; this one is deprecated",
	},
	{
		"golang.org/x/net/http2",
		[]string{"transport/h2/internal/loop", "internal/h2peer", "internal/h2websocket", "conformance/..."},
		"only the connection loop and hostile test peers handle frames of HTTP/2",
	},
	{
		"golang.org/x/net/http/httpguts",
		[]string{"transport/h2/internal/loop"},
		"the connection loop checks header fields as net/http does",
	},
	{"golang.org/x/sys/unix", []string{"transport/internal/connio"}, "one package knows the socket options of Linux"},
	{"go.etcd.io/etcd", []string{"store/etcd"}, "a program without an etcd store must not link etcd's client"},
	{
		"google.golang.org/grpc",
		[]string{"store/etcd", "benchmarks/rivals/..."},
		"etcd's client uses gRPC; otherwise it is only a rival",
	},
	{
		"google.golang.org/protobuf",
		[]string{"benchmarks/rivals/...", "kubeapi/kubeproto", "kubeapi/protobody", "examples/extending/protoencoding"},
		"gRPC's messages, which are only a rival's, the fields of Kubernetes' objects, and the example of an encoding",
	},
	{"github.com/coder/websocket", []string{"benchmarks/rivals/internal/servers"}, "it is only a rival"},
	{"github.com/centrifugal/centrifuge", []string{"benchmarks/rivals/internal/servers"}, "it is only a rival"},
	{"github.com/tmaxmax/go-sse", []string{"benchmarks/rivals/internal/servers"}, "it is only a rival"},
	{
		"gonum.org/v1/plot",
		[]string{"benchmarks/rivals/internal/report"},
		"only the report of the rivals has plots",
	},
	{
		"github.com/coreos/go-systemd/v22/activation",
		[]string{"cmd/listwatch/internal/listen"},
		"only the program takes sockets over",
	},
	{
		"github.com/coreos/go-systemd/v22/daemon",
		[]string{"cmd/listwatch/internal/listen"},
		"only the program reports its state to systemd",
	},
	{"github.com/coreos/go-oidc", []string{"oidc"}, "only users of an identity provider need its client"},
	{
		"golang.org/x/time/rate",
		[]string{"cmd/listwatch/internal/benchcmd"},
		"only the command bench writes at a fixed rate",
	},
	{"go.uber.org/zap", []string{"store/etcd"}, "etcd's client needs a zap logger to be silent"},
	{"go.etcd.io/bbolt", []string{"store/bolt"}, "a program without a bolt store must not link a database"},
	{
		"github.com/tidwall/btree",
		[]string{"internal/ordered"},
		"a type with a generic B-tree makes its users compile the B-tree again",
	},
	{
		"github.com/go-json-experiment/json",
		[]string{"internal/govalue", "internal/rawjson", "internal/savedcopy", "framing", "store/postgres"},
		"the future encoding/json: it validates three times as fast, and decodes for informers",
	},
	{"github.com/klauspost/compress", []string{"internal/compress"}, "all compression is in one package"},
	{"github.com/fxamacker/cbor", []string{"framing"}, "codecs of the wire belong to framing"},
	{
		"github.com/vmihailenco/msgpack",
		[]string{"examples/extending/msgpackframing"},
		"the example of a framing that needs a library; our own framings need none",
	},
	{"github.com/go-chi/chi", []string{"examples/middleware"}, "the toolkit works with any router"},
	{
		"github.com/rs/cors",
		[]string{"examples/middleware"},
		"watchserver.CORS suffices; the example shows that others work too",
	},
	{
		"github.com/prometheus/client_golang",
		[]string{"observe/metrics", "examples/middleware"},
		"hooks and middleware measure, so that users choose the library",
	},
	{
		"go.opentelemetry.io",
		[]string{"observe/spans", "examples/middleware"},
		"hooks and middleware trace, so that users choose the library",
	},
	{"golang.org/x/tools", []string{"tools/lint"}, "only the linter needs analyzers"},
	{"honnef.co/go/tools", []string{"tools/lint"}, "only the linter needs analyzers"},
	{"modernc.org/sqlite", []string{"examples/sqlite"}, "only the example of a table in SQLite needs a driver"},
	{
		"github.com/nats-io",
		[]string{"examples/nats/..."},
		"only the example of a bucket in NATS needs its client and its server",
	},
	{
		"github.com/jackc/pgx",
		[]string{"store/postgres", "examples/postgres/..."},
		"a program without tables of PostgreSQL must not link a driver",
	},
	{
		"k8s.io/apimachinery",
		[]string{
			"kubeapi", "kubeapi/crd", "kubeapi/internal/...", "kubeapi/kubeproto", "kubeapi/kubetest/...",
			"kubeapi/protobody", "kubeapi/schema", "kubeapi/table",
		},
		"only the face of the Kubernetes API follows Kubernetes' own code",
	},
	{
		"k8s.io/api",
		[]string{
			"kubeapi", "kubeapi/clusterrelay", "kubeapi/internal/accessreview", "kubeapi/kubetest/...",
			"kubeapi/protobody", "kubeapi/schema",
		},
		"the types of built-in kinds, of discovery and of reviews",
	},
	{
		"k8s.io/kube-openapi",
		[]string{"kubeapi/crd", "kubeapi/internal/apply", "kubeapi/kubetest/..."},
		"server-side apply, the validation of custom resources and the types in policies are Kubernetes' own code",
	},
	{
		"k8s.io/apiextensions-apiserver",
		[]string{"kubeapi/crd", "kubeapi/kubetest/..."},
		"CustomResourceDefinitions are read by Kubernetes' own code",
	},
	{
		"k8s.io/apiserver",
		[]string{"kubeapi/kubetest/..."},
		"CEL rules are checked by Kubernetes' own code, which only a test can afford to link",
	},
	{
		"k8s.io/client-go/util/jsonpath",
		[]string{"kubeapi/kubetest/internal/rules", "kubeapi/table"},
		"columns have the JSON paths of kubectl, and policies those of their expressions",
	},
	{"k8s.io/client-go", []string{"kubeapi/kubetest/..."}, "the configuration of clients"},
	{
		"sigs.k8s.io/yaml",
		[]string{"kubeapi/crd", "kubeapi/kubetest/..."},
		"CustomResourceDefinitions are read by Kubernetes' own code",
	},
	{
		"sigs.k8s.io/structured-merge-diff",
		[]string{"kubeapi/internal/apply"},
		"server-side apply is Kubernetes' own code",
	},
	{"github.com/evanphx/json-patch", []string{"kubeapi/internal/patch"}, "patches are a verb of Kubernetes' API"},
	{
		"gopkg.in/evanphx/json-patch.v4",
		[]string{"kubeapi/kubetest/internal/admission"},
		"the patches of webhooks are applied by the package that kube-apiserver uses",
	},
	{
		"go.yaml.in/yaml",
		[]string{"kubeapi/internal/yamlbody", "cmd/listwatch/internal/kubeconfig", "cmd/listwatch/internal/config"},
		"Kubernetes uses YAML for bodies and kubeconfig files, and operators for configuration; our own formats are JSON",
	},
	{"golang.org/x/term", []string{"cmd/*/..."}, "only programs use terminals"},
	{
		"github.com/google/go-cmp",
		[]string{"conformance/internal/cases/...", "conformance/harness"},
		"a conformance case shows the difference to the wanted result",
	},
	{"github.com/spf13/cobra", []string{"cmd/*/..."}, "only programs have flags"},
	{"github.com/spf13/pflag", []string{"cmd/*/..."}, "only programs have flags"},
}
