# The runs that take too long for every change. Each target long-X, and attack, is a job of the nightly workflow. The Makefile includes
# this file: make X runs a target, and make help-nightly lists them.

RIVALS     ?=
WATCHERS   ?= 1000
ROUNDS     ?= 5
OUT        ?= $(CURDIR)/.bin/rivals-results
ATTACKTIME ?= 8s
STORMFLAGS ?=

# The programs of Kubernetes of the version of the libraries in interop/go.mod, and of the oldest version that docs/relay-cluster.md
# promises.
KUBERNETES := .bin/kubernetes/v1$(shell sed -n 's/^\tk8s.io\/apiserver v0//p' interop/go.mod)
POSTGRES := 17.10.0-beta.17 18.4.0-beta.17
OLDEST_KUBERNETES := .bin/kubernetes/v1.30.14

## agents: what 2,000 node agents and single informers cost, directly and through relays; builds kube-apiserver, then takes 25 minutes
.PHONY: agents
agents: $(KUBERNETES)/kube-apiserver
	@cd cmd/listwatch && go build -o ../../.bin/listwatch-relayed .
	@cd interop && LISTWATCH_KUBE_APISERVER=$(CURDIR)/$(KUBERNETES)/kube-apiserver LISTWATCH_RELAYED=$(CURDIR)/.bin/listwatch-relayed \
		go test ./agents -run='^$$' -bench='NodeAgents|Sync|NewestList' -benchtime=1x -timeout=40m

# The programs of Kubernetes are kept by version, so that they are built again when interop/go.mod requires another one.
.bin/kubernetes/%:
	@tools/kubernetes $(@F) $@ $(notdir $(@D))

## field: compare listwatch relay --cluster with the kube-apiserver behind it, also with an old etcd and at random; builds kube-apiserver, then takes six minutes
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

## storm: 1,000 watches, informers and pages that return at once to a server that was killed, whole state next to difference; takes five minutes
.PHONY: storm
storm:
	@mkdir -p .bin && cd cmd/listwatch && go build -o ../../.bin/listwatch-storm .
	@cd interop && go build -o ../.bin/etcd go.etcd.io/etcd/server/v3
	@[ -z "$$(command -v npm)" ] || npm --prefix benchmarks/pages ci --ignore-scripts --no-audit --no-fund
	@go test -run='^$$' -bench='^BenchmarkRestart$$' -benchtime=1x -timeout=1h ./benchmarks \
		-listwatch=$(CURDIR)/.bin/listwatch-storm -etcd=$(CURDIR)/.bin/etcd $(STORMFLAGS)

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

## long-fuzz: run every fuzz target for a minute, and compare our HTTP/2 loop with net/http's
.PHONY: long-fuzz
long-fuzz:
	@FUZZTIME=1m tools/fuzz
	@go test -vet=off -timeout 1h ./transport/h2 -run TestLoopActsAsNetHTTP -sequences 200000

## long-analyze: staticcheck with all dependencies, which finds the use of what they have deprecated
.PHONY: long-analyze
long-analyze:
	@mkdir -p .bin && cd tools && GOWORK=off GOFLAGS= go build -o ../.bin/ honnef.co/go/tools/cmd/staticcheck
	@.bin/staticcheck $(PACKAGES)

## long-robustness: the conformance suite on our server and client, ten minutes of faults, then twenty runs with other seeds
.PHONY: long-robustness
long-robustness:
	@go run ./cmd/listwatch conformance self --faults 10m
	@go test $(RACE) -vet=off -count=20 -timeout 1h ./conformance/robustness -run TestWatchersSurvive -v -for 30s -simulated 10m

## long-variants: the conformance cases in the variants and over the sources that make test leaves out, the whole matrix of transports, and 3,000 random histories of informers for each way to receive less
.PHONY: long-variants
long-variants:
	@go test $(RACE) -vet=off -count=1 -timeout 1h ./conformance/internal/cases ./conformance/internal/sources -all
	@go test -vet=off -count=1 -timeout 1h ./cmd/listwatch/internal/conformancecmd -run CommandsOfTheDocs -all
	@go test -vet=off -count=1 -timeout 1h ./conformance
	@go test -vet=off -count=1 -timeout 1h ./informer -run TestReducedInformersConverge -histories 3000

## long-javascript: the conformance suite on the JavaScript client in each version of Node.js
.PHONY: long-javascript
long-javascript:
	@cd interop && go test $(LEAN) -vet=off ./javascript -run OnEachRuntime -v -count=1 -timeout 1h -runtimes

## long-crash: ten minutes of SIGKILL for a server that writes to a file
.PHONY: long-crash
long-crash:
	@go test ./cmd/listwatch -run TestKilled -v -timeout 30m -crash.for 10m -crash.every 300ms

## long-cluster: twenty minutes of faults for two servers and three members of etcd
.PHONY: long-cluster
long-cluster:
	@cd interop && go test ./etcd -run TestWatchersSurviveClusterFaults -v -timeout 1h -for 20m

## long-postgres: half an hour of faults for two servers that follow the tables of a PostgreSQL
.PHONY: long-postgres
long-postgres:
	@cd interop && go test $(LEAN) -vet=off ./logical -run Chaos -v -count=1 -timeout 1h -for 30m

# PostgreSQL of other versions than the system's.
.bin/postgres/%/bin/postgres: tools/postgres
	@tools/postgres $* .bin/postgres/$*

## long-postgres-versions: the tests of tables with PostgreSQL 17 and 18, and the defects that the chaos test must find; downloads PostgreSQL
.PHONY: long-postgres-versions
long-postgres-versions: $(POSTGRES:%=.bin/postgres/%/bin/postgres)
	@for version in $(POSTGRES); do echo "PostgreSQL $$version"; \
		(cd interop && LISTWATCH_POSTGRES=$(CURDIR)/.bin/postgres/$$version/bin \
			go test $(LEAN) -vet=off ./logical -count=1 -timeout 1h -for 5m) || exit 1; done
	@cd interop && go test $(LEAN) -vet=off ./logical -run Mutants -v -count=1 -timeout 1h -mutants

## long-storage: Kubernetes' storage suite with the tests that need a machine with nothing else to do
.PHONY: long-storage
long-storage:
	@cd interop && go test $(LEAN) -vet=off ./storage -count=1 -timed

## long-suites: the test suites of interop/suites also on a kube-apiserver, which is built first
.PHONY: long-suites
long-suites: $(KUBERNETES)/kube-apiserver
	@cd interop && LISTWATCH_KUBE_APISERVER=$(CURDIR)/$< go test $(LEAN) -vet=off ./suites -v -count=1 -timeout 1h -bench=FirstList -benchtime=3x

## long-field: make field with the oldest kube-apiserver that the relay supports, which is built first
.PHONY: long-field
long-field: $(OLDEST_KUBERNETES)/kube-apiserver
	@$(call FIELD,$<)

## long-definitions: the definitions and samples of all projects of interop/definitions, from the module proxy
.PHONY: long-definitions
long-definitions:
	@cd interop && go test $(LEAN) -vet=off ./definitions -v -count=1 -timeout 1h -projects all

## long-components: kube-controller-manager and kube-scheduler at a kube-apiserver and at a relay of it; builds them first
.PHONY: long-components
long-components: $(addprefix $(KUBERNETES)/kube-,apiserver controller-manager scheduler)
	@cd interop && LISTWATCH_KUBERNETES=$(CURDIR)/$(KUBERNETES) go test $(LEAN) -vet=off ./components -v -count=1 -timeout 1h

## long-e2e: Kubernetes' own specs of sig-api-machinery at a kube-apiserver and at a relay of it; builds both first
.PHONY: long-e2e
long-e2e: $(addprefix $(KUBERNETES)/,kube-apiserver kube-controller-manager kube-scheduler e2e.test ginkgo)
	@cd interop && LISTWATCH_KUBERNETES=$(CURDIR)/$(KUBERNETES) LISTWATCH_E2E=$(CURDIR)/$(KUBERNETES) \
		go test $(LEAN) -vet=off ./components -v -count=1 -timeout 2h -run Specs

# The programs that read a cluster are built again when tools/reader names other versions.
.bin/readers/%: tools/reader
	@tools/reader $(@F) $@

## long-readers: CoreDNS and kube-state-metrics at a kube-apiserver and at a relay of it; builds them first
.PHONY: long-readers
long-readers: $(addprefix $(KUBERNETES)/kube-,apiserver controller-manager scheduler) .bin/readers/coredns .bin/readers/kube-state-metrics
	@cd interop && LISTWATCH_KUBERNETES=$(CURDIR)/$(KUBERNETES) LISTWATCH_READERS=$(CURDIR)/.bin/readers \
		go test $(LEAN) -vet=off ./components -v -count=1 -timeout 1h -run 'Names|Metrics'

## long-lives: make lives with a thousand random lives
.PHONY: long-lives
long-lives: $(addprefix $(KUBERNETES)/kube-,apiserver controller-manager)
	@$(call LIVES,-lives 1000)

## long-relayed: compare a relay of a cluster with a direct API server
.PHONY: long-relayed
long-relayed:
	@cd interop && go test $(LEAN) -vet=off ./kubernetes -run RelayedRequests -compare-relayed -v -count=1 -timeout 30m

## long-rolling: a rolling restart, with limits for the delays that watchers see, and another one under 500 writes a second
.PHONY: long-rolling
long-rolling:
	@cd interop && go test $(LEAN) -vet=off ./deploy -run Rolling -v -count=1 -timed
	@cd interop && go test $(LEAN) -vet=off ./deploy -run Rolling -v -count=1 -rate 500 -backlog 3m -timeout 30m

## long-models: check the models of cursors and relays with spin, a Debian package
.PHONY: long-models
long-models:
	@go test -vet=off ./internal/models -count=1 -timeout 30m -check

## long-http2: compare our HTTP/2 server with net/http's, with real clients and bodies of 1 GiB
.PHONY: long-http2
long-http2:
	@cd interop && go test $(LEAN) -vet=off ./http2 -count=1 -timeout 1h -bulk 1073741824

## long-interop: make interop with the race detector
.PHONY: long-interop
long-interop:
	@cd interop && go test $(RACE) -vet=off -timeout 1h ./...
