# Go, git, make and gcc (for the race detector) are all that is needed. The linters are pinned in tools/go.mod and are built from source.

TIMEOUT   ?= 20m
FUZZTIME  ?= 1s
TARGET    ?=
BENCH     ?= .
BENCHTIME ?= 1s
RIVALS    ?=
ATTACKTIME ?= 8s
WATCHERS  ?= 1000
ROUNDS    ?= 5
STORMFLAGS ?=
OUT       ?= $(CURDIR)/.bin/rivals-results

# All modules of the workspace (go.work). interop has a workspace of its own, and benchmarks/rivals has none, because they would raise
# everybody's dependencies.
MODULES  := $(shell go list -m -f '{{.Dir}}')
PACKAGES ?= $(MODULES:%=%/...)
# The packages that take longest begin first, so that at the end no processor waits for one of them.
LONGEST := $(CURDIR)/examples/sqlite $(CURDIR)/cmd/listwatch/... $(CURDIR)/examples $(CURDIR)/examples/nats $(CURDIR)/conformance/...
LONGEST_INTEROP := ./kubernetes ./javascript ./suites ./proxies ./clients

# Without the tables for debuggers, which no test reads, compiling takes a fifth less time.
LEAN := -gcflags=all=-dwarf=false
# One set of objects serves the linters and the tests: the one with the race detector.
RACE := -race $(LEAN)
# Tests that wait leave their processors to the tests of other packages.
# Under make quick most tests wait, so half as many packages more run at once.
AT_ONCE := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2)))
# A process with the race detector sleeps for a second before it exits, and the tests start hundreds.
export GORACE ?= atexit_sleep_ms=20
TOOL := GOWORK=off GOFLAGS= go tool -modfile=$(CURDIR)/tools/go.mod
# Less garbage collection saves up to a quarter of the processor time of a package of tests.
SPARE_MEMORY := GOGC=400
# The race detector would make the Kubernetes API server and etcd too slow, and vet would analyze 1,900 packages of theirs.
INTEROP := go test $(LEAN) -p=$(AT_ONCE) -vet=off -timeout=$(TIMEOUT) $(INTEROPFLAGS)
LINT_INTEROP := GOFLAGS='$(shell go env GOFLAGS) $(LEAN)' $(CURDIR)/.bin/lint ./...
# The programs of Kubernetes of the version of the libraries in interop/go.mod, and of the oldest version that docs/relay-cluster.md
# promises.
KUBERNETES := .bin/kubernetes/v1$(shell sed -n 's/^\tk8s.io\/apiserver v0//p' interop/go.mod)
OLDEST_KUBERNETES := .bin/kubernetes/v1.30.14
# The tools of make test are built into .bin by one command.
TOOLS := ./lint mvdan.cc/gofumpt

# Steps run one after the other: each uses all processors.
.NOTPARALLEL:
.DEFAULT_GOAL := help

## test: everything but interop: linters, unit tests with the race detector, fuzz targets
.PHONY: test
test:
	@tools/steps tools format commits analyze unit

## interop: linters, and the tests with real clients and servers (kubectl, client-go, a Kubernetes API server, etcd, PostgreSQL, Node.js, Python)
.PHONY: interop
interop: tools
	@cd interop && $(LINT_INTEROP)
	@cd benchmarks/rivals && GOWORK=off $(LINT_INTEROP)
	@cd interop && $(INTEROP) $(LONGEST_INTEROP) ./...
	@$(MAKE) --no-print-directory relayed
	@cd benchmarks/rivals && GOWORK=off $(INTEROP) ./...

# The tests whose clients do not look into the server.
RELAYED := TestKubectl(Get|Discovers|Apply|Describe|Creates|Patches|WatchPrints|Edit|Exec|Reads|Scales|Reports)
RELAYED := $(RELAYED)|TestReconciler|TestFinalizer|TestClientReads|TestPython|TestNodeClients|TestInformersAgree

## relayed: kubectl, client-go, controller-runtime, Python and Node.js through listwatch relay --cluster; takes a minute
.PHONY: relayed
relayed:
	@mkdir -p .bin && cd cmd/listwatch && go build $(LEAN) -o ../../.bin/listwatch-relayed .
	@cd interop && LISTWATCH_RELAYED=$(CURDIR)/.bin/listwatch-relayed go test $(LEAN) -vet=off -count=1 -timeout=$(TIMEOUT) -run '$(RELAYED)' ./clients

## agents: what 2,000 node agents cost a kube-apiserver, directly and through two relays; builds kube-apiserver, then takes 17 minutes
.PHONY: agents
agents: $(KUBERNETES)/kube-apiserver
	@cd cmd/listwatch && go build -o ../../.bin/listwatch-relayed .
	@cd interop && LISTWATCH_KUBE_APISERVER=$(CURDIR)/$(KUBERNETES)/kube-apiserver LISTWATCH_RELAYED=$(CURDIR)/.bin/listwatch-relayed \
		go test ./agents -run='^$$' -bench=NodeAgents -benchtime=1x -timeout=$(TIMEOUT)

# The programs of Kubernetes are kept by version, so that they are built again when interop/go.mod requires another one.
.bin/kubernetes/%:
	@tools/kubernetes $(@F) $@ $(notdir $(@D))

## field: compare listwatch relay --cluster with the kube-apiserver behind it, also with an old etcd; builds kube-apiserver, then takes three minutes
.PHONY: field
field: $(KUBERNETES)/kube-apiserver
	@$(call FIELD,$<)

# FIELD is called with the path of a kube-apiserver.
FIELD = cd interop && LISTWATCH_KUBE_APISERVER=$(CURDIR)/$(1) go test $(LEAN) -vet=off -count=1 -timeout=$(TIMEOUT) -v ./field

## lives: lead objects through their lives in kubetest and in a cluster; builds kube-apiserver and kube-controller-manager, then takes a minute and a half
.PHONY: lives
lives: $(addprefix $(KUBERNETES)/kube-,apiserver controller-manager)
	@$(call LIVES,)

# LIVES is called with flags of the test.
LIVES = cd interop && LISTWATCH_KUBERNETES=$(CURDIR)/$(KUBERNETES) go test $(LEAN) -vet=off ./lives -v -count=1 -timeout=1h $(1)

## quick: the short unit tests without the race detector, for use between two edits: takes about a minute
.PHONY: quick
quick:
	@$(SPARE_MEMORY) go test -short -vet=off -p=$$((3 * $(AT_ONCE) / 2)) $(PACKAGES)

## plain: all unit tests without the race detector, and vet: what the workflows run on macOS and Windows
.PHONY: plain
plain:
	@go test -timeout=$(TIMEOUT) $(PACKAGES)

## lint: what make test checks before it runs the tests
.PHONY: lint
lint:
	@tools/steps tools format commits analyze arch modules

# Packages with long random tests of one goroutine, where the race detector finds nothing and takes ten times as long. With it, they
# run a tenth of these tests.
SINGLE := ./internal/archtest ./internal/history ./internal/rawjson

## unit: the unit tests of every module with the race detector, and 200 inputs for every fuzz target; a package may take TIMEOUT
.PHONY: unit
unit:
	@$(SPARE_MEMORY) go test $(LEAN) -p=$(AT_ONCE) -vet=off -timeout=$(TIMEOUT) $(SINGLE)
	@$(SPARE_MEMORY) FUZZTIME=200x go test $(RACE) -p=$(AT_ONCE) -vet=off -exec='$(CURDIR)/tools/test-and-fuzz' -timeout=$(TIMEOUT) $(if $(filter command line,$(origin PACKAGES)),,$(LONGEST)) $(PACKAGES)

## fuzz: run every fuzz target for FUZZTIME each; TARGET=FuzzX selects the targets with that prefix
.PHONY: fuzz
fuzz:
	@FUZZTIME=$(FUZZTIME) tools/fuzz $(TARGET:Fuzz%=%)

## bench: the benchmarks; PACKAGES, BENCH and BENCHTIME choose which and how long
.PHONY: bench
bench:
	@go test -run='^$$' -bench='$(BENCH)' -benchtime=$(BENCHTIME) -benchmem $(PACKAGES)

## storm: 1,000 watches, informers and pages that return at once to a server that was killed, whole state next to difference; takes five minutes
.PHONY: storm
storm:
	@mkdir -p .bin && cd cmd/listwatch && go build -o ../../.bin/listwatch-storm .
	@cd interop && go build -o ../.bin/tryetcd ./tryetcd
	@[ -z "$$(command -v npm)" ] || npm --prefix benchmarks/pages ci --ignore-scripts --no-audit --no-fund
	@go test -run='^$$' -bench='^BenchmarkRestart$$' -benchtime=1x -timeout=1h ./benchmarks \
		-listwatch=$(CURDIR)/.bin/listwatch-storm -tryetcd=$(CURDIR)/.bin/tryetcd $(STORMFLAGS)

# The attacks that need a server of their own, such as one with a data file.
ATTACKS := TestAttacks|TestUnfinishedBodiesDoNotDelayShutdown|TestServerSurvivesTheEndOfItsOutput|TestDeletedDataFileIsNoticed
ATTACKS := $(ATTACKS)|TestSlowReadersStay|TestHeaderLimitsHoldForEveryRequest|TestCrossSiteWritesNeedAnAllowedOrigin|TestNoQueryIsLogged|TestDebugRoutesRefuseOtherPagesAndHosts

## attack: attack a server next to an innocent client, ATTACKTIME for each attack (docs/reliability.md); takes ten minutes on a quiet machine
.PHONY: attack
attack:
	@LISTWATCH_ATTACK_TIME=$(ATTACKTIME) go test -vet=off -count=1 -timeout=$(TIMEOUT) -run='^($(ATTACKS))$$' -v ./cmd/listwatch

## rivals: compare listwatch with other servers; RIVALS (names, comma-separated), WATCHERS and ROUNDS limit it, OUT gets table and plots
.PHONY: rivals
rivals:
	@mkdir -p .bin
	@[ -n "$(RIVALS)" -a -z "$(findstring kubernetes,$(RIVALS))" ] || { echo "building the Kubernetes API server" >&2; \
		cd interop && go test -c -o ../.bin/apiserver ./rivals; }
	@cd benchmarks/rivals && GOWORK=off go build -o ../../.bin/rivals .
	@.bin/rivals -rivals='$(RIVALS)' -watchers=$(WATCHERS) -rounds=$(ROUNDS) -kubernetes=.bin/apiserver -out='$(OUT)' $(RIVALSFLAGS)

## fmt: format the source with gofumpt
.PHONY: fmt
fmt: tools
	@.bin/gofumpt -l -w .
	@.bin/gofumpt -w . # again: lines that the first run joined may have to be aligned

## tidy: go mod tidy in every module
.PHONY: tidy
tidy:
	@GOWORK=off tools/each-module go mod tidy
	@cd tools && GOWORK=off go mod tidy

## modules: build every module by its own go.mod, without the workspace
.PHONY: modules
modules:
	@GOWORK=off tools/each-module go build -o /dev/null ./...

## cover: the coverage of the root module's tests; coverage.out is for go tool cover -html=coverage.out
.PHONY: cover
cover:
	@go test -coverprofile=coverage.out -coverpkg=./... ./...
	@go tool cover -func=coverage.out | tail -1

## vulncheck: known vulnerabilities in what every module depends on
.PHONY: vulncheck
vulncheck:
	@GOWORK=off tools/each-module $(TOOL) govulncheck ./...

## workflows: check .github/workflows with actionlint
.PHONY: workflows
workflows:
	@$(TOOL) actionlint

## long-fuzz: nightly: run every fuzz target for a minute, and compare our HTTP/2 loop with net/http's
.PHONY: long-fuzz
long-fuzz:
	@FUZZTIME=1m tools/fuzz
	@go test -vet=off -timeout 1h ./transport/h2 -run TestLoopActsAsNetHTTP -sequences 200000

## long-analyze: nightly: staticcheck with all dependencies, which finds the use of what they have deprecated
.PHONY: long-analyze
long-analyze:
	@mkdir -p .bin && cd tools && GOWORK=off GOFLAGS= go build -o ../.bin/ honnef.co/go/tools/cmd/staticcheck
	@.bin/staticcheck $(PACKAGES)

## long-robustness: nightly: the conformance suite on our server and client, ten minutes of faults, then twenty runs with other seeds
.PHONY: long-robustness
long-robustness:
	@go run ./cmd/listwatch conformance self --faults 10m
	@go test $(RACE) -vet=off -count=20 -timeout 1h ./conformance/robustness -run TestWatchersSurvive -v -for 30s -simulated 10m

## long-variants: nightly: the conformance cases in the variants and over the sources that make test leaves out, the whole matrix of transports, and 3,000 random histories of informers for each way to receive less
.PHONY: long-variants
long-variants:
	@go test $(RACE) -vet=off -count=1 -timeout 1h ./conformance/internal/cases ./conformance/internal/sources -all
	@go test -vet=off -count=1 -timeout 1h ./cmd/listwatch/internal/conformancecmd -run CommandsOfTheDocs -all
	@go test -vet=off -count=1 -timeout 1h ./conformance
	@go test -vet=off -count=1 -timeout 1h ./informer -run TestReducedInformersConverge -histories 3000

## long-javascript: nightly: the conformance suite on the JavaScript client in each version of Node.js
.PHONY: long-javascript
long-javascript:
	@cd interop && go test $(LEAN) -vet=off ./javascript -run OnEachRuntime -v -count=1 -timeout 1h -runtimes

## long-crash: nightly: ten minutes of SIGKILL for a server that writes to a file
.PHONY: long-crash
long-crash:
	@go test ./cmd/listwatch -run TestKilled -v -timeout 30m -crash.for 10m -crash.every 300ms

## long-cluster: nightly: twenty minutes of faults for two servers and three members of etcd
.PHONY: long-cluster
long-cluster:
	@cd interop && go test ./etcd -run TestWatchersSurviveClusterFaults -v -timeout 1h -for 20m

## long-storage: nightly: Kubernetes' storage suite with the tests that need a machine with nothing else to do
.PHONY: long-storage
long-storage:
	@cd interop && go test $(LEAN) -vet=off ./storage -count=1 -timed

## long-suites: nightly: the test suites of interop/suites also on a kube-apiserver, which is built first
.PHONY: long-suites
long-suites: $(KUBERNETES)/kube-apiserver
	@cd interop && LISTWATCH_KUBE_APISERVER=$(CURDIR)/$< go test $(LEAN) -vet=off ./suites -v -count=1 -bench=FirstList -benchtime=3x

## long-field: nightly: make field with the oldest kube-apiserver that the relay supports, which is built first
.PHONY: long-field
long-field: $(OLDEST_KUBERNETES)/kube-apiserver
	@$(call FIELD,$<)

## long-definitions: nightly: the definitions and samples of all projects of interop/definitions, from the module proxy
.PHONY: long-definitions
long-definitions:
	@cd interop && go test $(LEAN) -vet=off ./definitions -v -count=1 -timeout 1h -projects all

## long-components: nightly: kube-controller-manager and kube-scheduler at a kube-apiserver and at a relay of it; builds them first
.PHONY: long-components
long-components: $(addprefix $(KUBERNETES)/kube-,apiserver controller-manager scheduler)
	@cd interop && LISTWATCH_KUBERNETES=$(CURDIR)/$(KUBERNETES) go test $(LEAN) -vet=off ./components -v -count=1 -timeout 1h

## long-e2e: nightly: Kubernetes' own specs of sig-api-machinery at a kube-apiserver and at a relay of it; builds both first
.PHONY: long-e2e
long-e2e: $(addprefix $(KUBERNETES)/,kube-apiserver kube-controller-manager kube-scheduler e2e.test ginkgo)
	@cd interop && LISTWATCH_KUBERNETES=$(CURDIR)/$(KUBERNETES) LISTWATCH_E2E=$(CURDIR)/$(KUBERNETES) \
		go test $(LEAN) -vet=off ./components -v -count=1 -timeout 2h -run Specs

# The programs that read a cluster are built again when tools/reader names other versions.
.bin/readers/%: tools/reader
	@tools/reader $(@F) $@

## long-readers: nightly: CoreDNS and kube-state-metrics at a kube-apiserver and at a relay of it; builds them first
.PHONY: long-readers
long-readers: $(addprefix $(KUBERNETES)/kube-,apiserver controller-manager scheduler) .bin/readers/coredns .bin/readers/kube-state-metrics
	@cd interop && LISTWATCH_KUBERNETES=$(CURDIR)/$(KUBERNETES) LISTWATCH_READERS=$(CURDIR)/.bin/readers \
		go test $(LEAN) -vet=off ./components -v -count=1 -timeout 1h -run 'Names|Metrics'

## long-lives: nightly: make lives with a thousand random lives
.PHONY: long-lives
long-lives: $(addprefix $(KUBERNETES)/kube-,apiserver controller-manager)
	@$(call LIVES,-lives 1000)

## long-relayed: nightly: compare a relay of a cluster with a direct API server
.PHONY: long-relayed
long-relayed:
	@cd interop && go test $(LEAN) -vet=off ./kubernetes -run RelayedRequests -compare-relayed -v -count=1 -timeout 30m

## long-rolling: nightly: a rolling restart, with limits for the delays that watchers see, and another one under 500 writes a second
.PHONY: long-rolling
long-rolling:
	@cd interop && go test $(LEAN) -vet=off ./deploy -run Rolling -v -count=1 -timed
	@cd interop && go test $(LEAN) -vet=off ./deploy -run Rolling -v -count=1 -rate 500 -backlog 3m -timeout 30m

## long-models: nightly: check the models of cursors and relays with spin, a Debian package
.PHONY: long-models
long-models:
	@go test -vet=off ./internal/models -count=1 -timeout 30m -check

## long-http2: nightly: compare our HTTP/2 server with net/http's, with real clients and bodies of 1 GiB
.PHONY: long-http2
long-http2:
	@cd interop && go test $(LEAN) -vet=off ./http2 -count=1 -timeout 1h -bulk 1073741824

## long-interop: nightly: make interop with the race detector
.PHONY: long-interop
long-interop:
	@cd interop && go test $(RACE) -vet=off -timeout 1h ./...

## tools: build the formatter and the linter that make test uses
.PHONY: tools
tools:
	@mkdir -p .bin && cd tools && GOWORK=off GOFLAGS= go build $(LEAN) -ldflags='-s -w' -o ../.bin/ $(TOOLS)

## format: fail if gofumpt would change a file
.PHONY: format
format: tools
	@files=$$(.bin/gofumpt -l .) || exit 1; \
		[ -z "$$files" ] || { echo "not formatted; run make fmt:"; echo "$$files"; exit 1; }

## analyze: run the analyzers of go vet and staticcheck in one pass
.PHONY: analyze
analyze: tools
	@$(SPARE_MEMORY) GOFLAGS='$(shell go env GOFLAGS) $(RACE)' .bin/lint $(PACKAGES)

## arch: the rules for imports, dependencies and the form of the source (internal/archtest)
.PHONY: arch
arch:
	@go test $(LEAN) -vet=off ./internal/archtest

## commits: the subjects of the commits since BASE, origin/main if not given
.PHONY: commits
commits:
	@tools/commits $(BASE)

## help: print this text
.PHONY: help
help:
	@sed -n 's/^## \([a-z-]*\): /\1 /p' Makefile | awk '{ name = $$1; sub(name " ", ""); printf "  make %-16s %s\n", name, $$0 }'
