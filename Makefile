# Go, git, make and gcc (for the race detector) are all that is needed. The linters are pinned in tools/go.mod and are built from source.

TIMEOUT   ?= 20m
FUZZTIME  ?= 1s
TARGET    ?=
BENCH     ?= .
BENCHTIME ?= 1s

# All modules of the workspace (go.work). interop has a workspace of its own, and benchmarks/rivals has none, because they would raise
# everybody's dependencies.
MODULES  := $(shell go list -m -f '{{.Dir}}')
PACKAGES ?= $(MODULES:%=%/...)
# The packages that take longest begin first, so that at the end no processor waits for one of them.
LONGEST := $(CURDIR)/cmd/listwatch/... $(CURDIR)/conformance/... $(CURDIR)/kubeapi/kubetest $(CURDIR)/kubeapi/clusterrelay
LONGEST_INTEROP := ./kubernetes ./javascript ./suites ./proxies ./clients

# Without the tables for debuggers, which no test reads, compiling and linking take a fifth less time.
LEAN := -gcflags=all=-dwarf=false -ldflags=-s
# One set of objects serves the linters and the tests: the one with the race detector.
RACE := -race $(LEAN)
# Tests that wait leave their processors to the tests of other packages.
# Under make quick most tests wait, so half as many packages more run at once.
AT_ONCE := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2)))
# Tests that call t.Parallel mostly wait for other processes or for the clock.
WAITING := -parallel=8
# A process with the race detector sleeps for a second before it exits, and the tests start hundreds.
export GORACE ?= atexit_sleep_ms=20
TOOL := GOWORK=off GOFLAGS= go tool -modfile=$(CURDIR)/tools/go.mod
# Less garbage collection saves up to a quarter of the processor time of a package of tests.
SPARE_MEMORY := GOGC=400
# The race detector would make the Kubernetes API server and etcd too slow, and vet would analyze 1,900 packages of theirs.
INTEROP := go test $(LEAN) -p=$(AT_ONCE) -vet=off -timeout=$(TIMEOUT) $(INTEROPFLAGS)
LINT_INTEROP := GOFLAGS='$(shell go env GOFLAGS) $(LEAN)' $(CURDIR)/.bin/lint ./...
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

# Packages with tests that take up to ten times as long with the race detector and learn nothing from it. With it, they run none of
# these tests, or a tenth of them (internal/racetest).
SINGLE := ./cmd/listwatch/internal/conformancecmd ./internal/history ./conformance/internal/mutants ./examples/nats \
	./examples/sqlite ./informer ./transport/h2/internal/loop ./internal/rawjson ./internal/archtest ./internal/compress \
	./conformance/checker

## unit: the unit tests of every module with the race detector, and 200 inputs for every fuzz target; a package may take TIMEOUT
.PHONY: unit
unit:
	@$(SPARE_MEMORY) go test $(LEAN) $(WAITING) -p=$(AT_ONCE) -vet=off -timeout=$(TIMEOUT) $(SINGLE)
	@$(SPARE_MEMORY) FUZZTIME=200x go test $(RACE) $(WAITING) -p=$(AT_ONCE) -vet=off -exec='$(CURDIR)/tools/test-and-fuzz' -timeout=$(TIMEOUT) $(if $(filter command line,$(origin PACKAGES)),,$(LONGEST)) $(PACKAGES)

## fuzz: run every fuzz target for FUZZTIME each; TARGET=FuzzX selects the targets with that prefix
.PHONY: fuzz
fuzz:
	@FUZZTIME=$(FUZZTIME) tools/fuzz $(TARGET:Fuzz%=%)

## bench: the benchmarks; PACKAGES, BENCH and BENCHTIME choose which and how long
.PHONY: bench
bench:
	@go test -run='^$$' -bench='$(BENCH)' -benchtime=$(BENCHTIME) -benchmem $(PACKAGES)

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

include nightly.mk

# HELP is called with the name of a file.
HELP = sed -n 's/^\#\# \([a-z0-9-]*\): /\1 /p' $(1) | awk '{ name = $$1; sub(name " ", ""); printf "  make %-16s %s\n", name, $$0 }'

## help: print this text
.PHONY: help
help:
	@$(call HELP,Makefile)

## help-nightly: the targets of nightly.mk: long runs, comparisons with kube-apiserver and with other servers
.PHONY: help-nightly
help-nightly:
	@$(call HELP,nightly.mk)
