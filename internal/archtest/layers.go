package archtest

// modulePath is the root module; the tables name its packages without it, and "." is its root package.
const modulePath = "github.com/listwatch/listwatch"

// A layer is a rank of packages. Imports point down: to a lower layer only, never to a sibling.
type layer struct {
	what string
	// packages are patterns of path.Match; one that ends in "/..." covers the packages beneath too, and these count as one: they may
	// import each other.
	packages []string
}

// layers are all the packages of the root module, the lowest layer first. A new package belongs here.
var layers = []layer{
	{"leaves: they know nothing of us", []string{"internal/rawjson", "internal/pool", "internal/compress", "internal/memnet", "internal/archtest", "internal/leaktest", "internal/batchread", "internal/h2peer"}},
	{"HTTP servers for tests", []string{"internal/testhttp"}},
	{"the vocabulary, which everybody speaks", []string{"."}},
	{"how events are spelt, remembered, and kept up with", []string{"framing", "internal/history", "internal/reflector"}},
	{"what a transport is, and what a store is", []string{"transport", "store"}},
	{"transports and stores", []string{"transport/*", "store/*"}},
	{"a Source at a URL: the server's end, the client's end", []string{"watchserver", "client"}},
	{"what is made of Sources", []string{"informer", "relay", "kubeapi/...", "internal/servertest"}},
	{"what holds all of them to the protocol", []string{"conformance/..."}},
	{"programs, and what measures them", []string{"benchmarks/...", "cmd/*/...", "examples", "examples/*/..."}},
}

// A limit narrows what the layers allow: packages import, of ours, only those listed.
type limit struct {
	packages []string
	only     []string
	reason   string
}

// leaves may be imported by anybody who is limited otherwise.
var leaves = layers[0].packages

var limits = []limit{
	{
		leaves,
		nil,
		"a leaf serves everybody, so it needs nobody",
	},
	{
		[]string{"."},
		[]string{"internal/rawjson", "internal/pool"},
		"who speaks the vocabulary must not get anything else with it",
	},
	{
		[]string{"internal/history"},
		[]string{"."},
		"the log knows no wire: frame builders reach it as functions",
	},
	{
		[]string{"internal/reflector", "informer"},
		append([]string{".", "internal/reflector"}, leaves...),
		"who follows a Source must not care which one it is",
	},
	{
		[]string{"transport"},
		append([]string{".", "framing"}, leaves...),
		"a transport carries frames: it knows nothing of histories, selections or stores",
	},
	{
		[]string{"transport/*"},
		append([]string{".", "framing", "transport", "internal/testhttp"}, leaves...),
		"a transport carries frames: it knows nothing of histories, selections or stores",
	},
	{
		[]string{"store"},
		append([]string{".", "internal/history"}, leaves...),
		"a store keeps objects: it knows nothing of how they travel",
	},
	{
		[]string{"store/*"},
		append([]string{".", "internal/history", "store"}, leaves...),
		"a store keeps objects: it knows nothing of how they travel",
	},
}

// A dependency is a module, or a part of one, that is not ours, and the only packages that may import it.
type dependency struct {
	prefix   string
	packages []string
	reason   string
}

// dependencies are all there may be outside of test files. The first whose prefix fits an import decides.
var dependencies = []dependency{
	{
		"github.com/gorilla/websocket",
		[]string{"transport/websocket"},
		"the libraries of WebSocket are hidden behind transport.Sender and transport.Receiver",
	},
	{
		"nhooyr.io/websocket",
		[]string{"transport/websocket"},
		"the libraries of WebSocket are hidden behind transport.Sender and transport.Receiver; its module is deprecated",
	},
	{
		"golang.org/x/net/http2",
		[]string{"transport/h2", "internal/h2peer", "conformance/..."},
		"net/http serves and dials HTTP/2; frames by hand are for the transport and for hostile peers",
	},
	{"go.etcd.io/etcd", []string{"store/etcd"}, "who keeps nothing in etcd must not link its client"},
	{"google.golang.org/grpc", []string{"store/etcd"}, "etcd is spoken to by gRPC, and nobody else is"},
	{"go.uber.org/zap", []string{"store/etcd"}, "etcd's client wants a logger, to be told to be silent"},
	{"go.etcd.io/bbolt", []string{"store/bolt"}, "who keeps nothing in a file must not link a database"},
	{
		"github.com/tidwall/btree",
		[]string{"internal/history", "informer"},
		"the state beside the log and the local store of an informer are the copy-on-write trees there are",
	},
	{
		"github.com/go-json-experiment/json",
		[]string{"informer"},
		"it is what encoding/json is to become; an informer decodes more than all others together, and must not wait for that",
	},
	{"github.com/klauspost/compress", []string{"internal/compress"}, "what is compressed is compressed once for all, in one place"},
	{"github.com/fxamacker/cbor", []string{"framing"}, "a codec of the wire is a framing"},
	{"github.com/evanphx/json-patch", []string{"kubeapi"}, "a verb of Kubernetes is kubeapi's"},
	{"go.yaml.in/yaml", []string{"kubeapi", "conformance/adapters"}, "bodies and kubeconfigs in YAML are Kubernetes' custom; ours are JSON"},
	{"golang.org/x/term", []string{"cmd/*/..."}, "terminals belong to programs"},
	{"github.com/google/go-cmp", []string{"conformance/cases"}, "a case shows how what it got differs from what is right; else it is for tests"},
	{"github.com/spf13/cobra", []string{"cmd/*/..."}, "flags belong to programs"},
	{"github.com/spf13/pflag", []string{"cmd/*/..."}, "flags belong to programs"},
}
