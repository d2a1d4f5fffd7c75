# Verbs for people and for .ci/run. `make` lists them.
#
# Tests that repeat something (seeds, kills, races) take their counts from
# WAVEHUB_TEST_SCALE, which each verb exports:
#   small   make test
#   medium  make race, e2e
#   full    make torture       the counts of a release
# An own value wins: WAVEHUB_TEST_SCALE=full make e2e.
# ARGS goes to go test: make test ARGS='-run TestRelay' PKGS=./relay/...

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO        ?= go
PKGS      ?= ./...
ARGS      ?=
FUZZTIME  ?= 10s
BENCHTIME ?= 1s
MINGW     ?= x86_64-w64-mingw32-gcc

# Without git, or in a clone that git refuses to read because another user owns
# it, the version is "dev" and no commit is recorded.
VERSION = $(shell git describe --always --dirty 2>/dev/null || echo dev)
VCS     = $(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)
BUILD   = $(GO) build -trimpath -buildvcs=$(VCS) -ldflags '-X main.version=$(VERSION)'
export GOFLAGS := -buildvcs=false $(GOFLAGS)
export WAVEHUB_BIN_DIR := bin

TOOLS     := bin/tools
GENERATED := openapi/openapi.yaml openapi/peer.yaml internal/hub/codes_gen.go client/codes_gen.go \
             openapi/api/api_gen.go openapi/peerapi/peerapi_gen.go docs/errors.md

# $(call scale,small) starts a recipe line: it exports and prints the scale.
scale   = export WAVEHUB_TEST_SCALE="$${WAVEHUB_TEST_SCALE:-$(1)}"; echo "scale: $$WAVEHUB_TEST_SCALE";
testsum = | $(TOOLS)/testsum
# $(call absent,what is missing) ends a verb that has no content yet.
absent  = echo "make $@: $(1)"; [ "$${CI:-}" = true ] || exit 2

.PHONY: help
help: ## print these lines
	@sed -nE 's/^([a-z0-9-]+):[^#]*## (.*)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | column -t -s '|' 2>/dev/null \
	  || grep -E '^[a-z0-9-]+:.*## ' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## bin/wavehub and bin/fakeagent for this machine
	CGO_ENABLED=1 $(BUILD) -o bin/ ./cmd/wavehub ./cmd/fakeagent

.PHONY: demo
demo: build ## the product's story on this machine, with scripted agents
	$(GO) run ./deploy/demo $(ARGS)

.PHONY: test
test: build testsum ## all tests at small scale
	@$(call scale,small) $(GO) test -json -timeout 10m $(ARGS) $(PKGS) $(testsum)
	@cd tools && $(GO) test ./...

.PHONY: race
race: build testsum ## all tests but internal/e2e under the race detector, medium scale
	@$(call scale,medium) pkgs=$$($(GO) list $(PKGS) | grep -vE '/internal/e2e(/|$$)'); \
	CGO_ENABLED=1 $(GO) test -json -race -timeout 20m $(ARGS) $$pkgs $(testsum)

.PHONY: e2e
e2e: build testsum ## the tests on the real binary and the simulation, at medium scale
	@$(call scale,medium) $(GO) test -json -count=1 -timeout 20m $(ARGS) ./internal/e2e/... ./internal/sim $(testsum)

# The CLIs of agents that tests run, each at the version that the launchers were
# written for.
CI_AGENTS  := @openai/codex@0.171.0 @anthropic-ai/claude-code@2.1.197
ALL_AGENTS := $(CI_AGENTS) @google/gemini-cli@0.61.0 opencode-ai@1.18.33
# $(call real,packages,which subtests) installs agents and runs their tests.
real = command -v npm >/dev/null || { $(call absent,npm is not installed); exit 0; }; \
	npm install --prefix bin/agents --no-audit --no-fund --loglevel error $(1) || { $(call absent,npm installs nothing here); exit 0; }; \
	WAVEHUB_AGENT_RUN='$(2)' $(GO) test -json -count=1 -timeout 12m -run 'TestRealAgents$$' $(ARGS) ./internal/e2e $(testsum)

.PHONY: agents
agents: build testsum ## codex and claude from npm, at work against a scripted model (WAVEHUB_FAKEMODEL)
	@$(call real,$(CI_AGENTS),(codex|claude))

.PHONY: e2e-agents
e2e-agents: build testsum ## all agents that npm has, as make agents
	@$(call real,$(ALL_AGENTS),.)

.PHONY: torture
torture: build ## make e2e and the models of waves at full scale; prints its tables
	@$(call scale,full) $(GO) test -v -count=1 -timeout 4h $(ARGS) ./internal/e2e/... ./internal/sim ./internal/wave

.PHONY: soak
soak: build ## a crowd of agents for ten minutes while their hub is killed; ARGS='-duration 1m'
	$(GO) run ./deploy/soak $(ARGS)

.PHONY: lint
lint: ## gofmt, vet for three systems, staticcheck, the house rules
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not gofmt-ed:"; echo "$$bad"; exit 1; fi
	$(GO) vet $(PKGS)
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $(GO) vet $(PKGS)
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet $(PKGS)
	cd tools && $(GO) vet ./... && $(GO) build -o ../$(TOOLS)/ honnef.co/go/tools/cmd/staticcheck
	$(TOOLS)/staticcheck $$($(GO) list $(PKGS) | grep -v '/openapi/')  # all of openapi/ is generated
	cd tools && ../$(TOOLS)/staticcheck ./...
	$(GO) test -count=1 ./internal/house

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (10s)
	@targets=$$(grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed -E 's|/[^/]*:func |:|' | sort); \
	[ -n "$$targets" ] || { echo "make $@: no fuzz target"; exit 2; }; \
	for t in $$targets; do echo "fuzz: $$t"; \
	  $(GO) test -run '^$$' -fuzz "^$${t#*:}$$" -fuzztime $(FUZZTIME) "$${t%:*}"; done

.PHONY: bench
bench: build ## all benchmarks; those of internal/e2e print ratios within the run
	@pkgs=$$(grep -rlE --include='*_test.go' '^func Benchmark' . | xargs -r -n1 dirname | sort -u); \
	[ -n "$$pkgs" ] || { echo "make $@: no benchmark"; exit 2; }; \
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 2h $(ARGS) $$pkgs

.PHONY: gen
gen: ## everything made from openapi/*.yaml
	cd tools && $(GO) build -o ../$(TOOLS)/ ./gencodes github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen
	$(TOOLS)/gencodes
	$(TOOLS)/oapi-codegen -config openapi/oapi-api.yaml openapi/openapi.yaml
	$(TOOLS)/oapi-codegen -config openapi/oapi-peerapi.yaml openapi/peer.yaml

.PHONY: gen-check
gen-check: ## fails if make gen changes a file, whether or not that file is committed
	@was=$$(mktemp -d); trap 'rm -rf "$$was"' EXIT; \
	for f in $(GENERATED); do mkdir -p "$$was/$${f%/*}"; cp "$$f" "$$was/$$f"; done; \
	$(MAKE) gen; stale=0; \
	for f in $(GENERATED); do diff -u --label "$$f, as it was" --label "$$f, as made" "$$was/$$f" "$$f" || stale=1; done; \
	[ $$stale = 0 ] || { echo "make $@: these files were stale and are now made anew"; exit 1; }

.PHONY: cross
cross: ## builds for Windows (cgo and not), macOS and Linux on arm64; vet of what lint leaves out
	GOOS=windows GOARCH=amd64 CGO_ENABLED=1 CC=$(MINGW) $(BUILD) -o dist/ ./cmd/...
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $(BUILD) -o dist/windows-amd64-nocgo/ ./cmd/...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(BUILD) -o dist/darwin-arm64/ ./cmd/...
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(BUILD) -o dist/linux-arm64/ ./cmd/...
	GOOS=windows GOARCH=amd64 CGO_ENABLED=1 CC=$(MINGW) $(GO) vet $(PKGS)
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) vet $(PKGS)

.PHONY: wine
wine: build testsum ## the Windows build under wine: its packages' tests, and a hub paired with one on Linux
	@command -v wine >/dev/null && command -v $(MINGW) >/dev/null || { $(call absent,wine or $(MINGW) is not installed); exit 0; }; \
	GOOS=windows GOARCH=amd64 CGO_ENABLED=1 CC=$(MINGW) $(BUILD) -o dist/ ./cmd/wavehub; \
	WAVEHUB_WINDOWS_BIN=dist $(GO) test -json -count=1 -timeout 12m -run 'TestWine$$' $(ARGS) ./internal/e2e $(testsum)

.PHONY: package
package: ## installers for the supported systems
	@$(call absent,there are no packages yet)

.PHONY: clean
clean: ## removes bin and dist
	rm -rf bin dist

.PHONY: testsum
testsum:
	@cd tools && $(GO) build -o ../$(TOOLS)/ ./testsum
