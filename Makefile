# Everything here needs Go, git, make and gcc (for the race detector) alone; the linters are built from tools/go.mod, pinned.

TIMEOUT   ?= 10m
FUZZTIME  ?= 2s
TARGET    ?=
PACKAGES  ?= ./...
BENCH     ?= .
BENCHTIME ?= 1s

TOOL := go tool -modfile=$(CURDIR)/tools/go.mod
EACH := tools/each-module

# Steps run one after the other, the quick ones first: the machine's processors belong to the tests.
.NOTPARALLEL:
.DEFAULT_GOAL := help

## test: all the tests, as the continuous integration runs them
.PHONY: test
test: lint unit fuzz
	@echo '==> all tests passed'

## quick: the unit tests alone, without the race detector
.PHONY: quick
quick:
	@$(EACH) go test ./...

## lint: formatting, vet, staticcheck, the rules of the source (internal/archtest)
.PHONY: lint
lint: format build vet staticcheck arch

## unit: the unit tests of every module with the race detector; a package may take TIMEOUT
.PHONY: unit
unit:
	@echo '==> unit tests, with the race detector'
	@$(EACH) go test -race -timeout=$(TIMEOUT) ./...
	@echo '==> what would take minutes to compile with it: Kubernetes'"'"' API server'
	@cd interop && go test -timeout=$(TIMEOUT) -run=Kubernetes ./reference ./informer ./relay

## fuzz: every fuzz target for FUZZTIME each; TARGET=FuzzX for those whose name begins so
.PHONY: fuzz
fuzz:
	@echo '==> fuzz targets, $(FUZZTIME) each'
	@FUZZTIME=$(FUZZTIME) tools/fuzz $(TARGET:Fuzz%=%)

## bench: the benchmarks; PACKAGES, BENCH and BENCHTIME choose which and how long
.PHONY: bench
bench:
	@go test -run='^$$' -bench='$(BENCH)' -benchtime=$(BENCHTIME) -benchmem $(PACKAGES)

## fmt: rewrites the source as gofumpt has it
.PHONY: fmt
fmt:
	@$(TOOL) gofumpt -l -w .
	@$(TOOL) gofumpt -w . # again: what the first run moved together may have to be aligned

## tidy: go mod tidy in every module
.PHONY: tidy
tidy:
	@$(EACH) go mod tidy
	@cd tools && go mod tidy

## cover: how much of the code the tests of the root module reach; coverage.out for `go tool cover -html=coverage.out`
.PHONY: cover
cover:
	@go test -coverprofile=coverage.out -coverpkg=./... ./...
	@go tool cover -func=coverage.out | tail -1

## help: this text
.PHONY: help
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST) | awk -F': ' '{ printf "  make %-7s %s\n", $$1, $$2 }'

.PHONY: format build vet staticcheck arch
format:
	@echo '==> gofumpt'
	@files=$$($(TOOL) gofumpt -l .) || exit 1; \
		[ -z "$$files" ] || { echo "not formatted ('make fmt' does it):"; echo "$$files"; exit 1; }
build:
	@echo '==> build, commands and examples too'
	@$(EACH) go build -o /dev/null ./...
vet:
	@echo '==> vet'
	@$(EACH) go vet ./...
staticcheck:
	@echo '==> staticcheck'
	@$(EACH) $(TOOL) staticcheck ./...
arch:
	@echo '==> the rules of the source'
	@go test ./internal/archtest
