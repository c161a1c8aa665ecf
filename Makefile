# The front door. Each target installs what it needs on Debian 12 (scripts/install-debian.sh) and says so.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
install = @scripts/install-debian.sh

.PHONY: help
help: ## Say what there is to make
	@awk -F ': .*## ' '/^[a-z0-9-]+: .*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Only while there is something to build does one line say for how long.
define build_program
	$(install) build
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release --target device-health-controller -- -n | grep -q 'no work to do' || \
	  echo "Building the program: about two minutes on 2 cores the first time, seconds afterwards."
	cmake --build --preset release --target device-health-controller
endef

.PHONY: demo
demo: ## Build the program and watch it handle failing devices in a simulated cluster
	$(build_program)
	build/release/device-health-controller demo $(DEMO_FLAGS)

.PHONY: build
build: ## Build the program: build/release/device-health-controller (two minutes on 2 cores the first time)
	$(build_program)

.PHONY: test
test: ## What to run before a push: all suites and the main stories on a real API server (a quarter of an hour on 2 cores the first time)
	$(install) test lint cluster
	@scripts/test.py test

.PHONY: verify
verify: ## Everything: also a real node, image, sanitizers, fuzzing (root; an hour on 2 cores the first time)
	$(install) all
	@scripts/test.py $(if $(AFTER_TEST),--after-test) verify

.PHONY: test-core
test-core: ## Only the core and scenario tests: no thread, no socket (a minute or two)
	$(install) test
	@scripts/test.py core

.PHONY: test-dev
test-dev: ## Core, scenario and loopback tests, checks and schema
	$(install) test
	@scripts/test.py dev

.PHONY: schedules
schedules: ## Random schedules of each kind by number, and a table of what they reached: make schedules [FROM=0] [TO=10000] (make test runs 500 of each)
	$(install) test
	@FROM=$(FROM) TO=$(TO) scripts/test.py schedules

.PHONY: test-cluster
test-cluster: ## Only the tests against a real control plane
	$(install) cluster
	@scripts/test.py cluster

.PHONY: campaign
campaign: ## One fault at each place of a main story on a real API server: make campaign [PART=writes|codes|streams|machine|bytes] [FROM=0] [TO=100] (root; hours, bytes days; goes on where it was stopped)
	$(install) cluster
	@PART=$(PART) FROM=$(FROM) TO=$(TO) scripts/test.py campaign

.PHONY: quiet
quiet: ## A real control plane where nothing happens for half an hour: make quiet [QUIET=30m] (needs a built program)
	$(install) cluster
	cd tests/cluster && go run ./cmd/prepare && DHC_QUIET=$(or $(QUIET),30m) go test -v -count=1 -timeout 60m -run TestAQuietCluster ./view

.PHONY: test-k8s
test-k8s: ## The same stories, and those of Jobs, owners, taints and roles, on an older Kubernetes: make test-k8s K8S=1.36 (or 1.35)
	$(install) cluster engine
	@DHC_K8S=$(K8S) scripts/test.py older

.PHONY: test-packaging
test-packaging: ## Only manifests, chart, alerts and dashboard
	$(install) cluster
	@scripts/test.py packaging

.PHONY: conformance
conformance: ## Build the conformance suite for any remediator of bad devices: build/device-health-conformance (docs/conformance.md)
	$(install) cluster
	@conformance/run build build/device-health-conformance
	@echo "build/device-health-conformance --help says how to run it against your cluster."

.PHONY: conformance-page
conformance-page: ## Run that suite against this controller and two rivals, and write the table of docs/evaluation.md (five minutes)
	$(install) cluster test
	@cmake --preset dev --log-level=WARNING >/dev/null
	cmake --build --preset dev --target device-health-controller audit-check
	@conformance/run build build/device-health-conformance
	@rm -rf build/conformance
	DHC_CONFORMANCE_REPORTS=$(CURDIR)/build/conformance DHC_BINARY=$(CURDIR)/build/dev/device-health-controller tests/cluster/run control-plane ./conformance
	@conformance/page.py build/device-health-conformance $(addprefix build/conformance/,$(addsuffix .json,device-health-controller NoExecute-rule drain-the-node))

.PHONY: test-peer
test-peer: ## Only how often an API server is asked: complete lists, reads and writes for each eviction (bench/peer)
	$(install) cluster
	@scripts/test.py peer

.PHONY: model
model: ## Only the model of the protocol: spin searches it, and finds each of its mutants (a few minutes)
	$(install) model
	@scripts/test.py model

.PHONY: conform
conform: ## Only whether the model of the protocol can do what the scenarios record (a minute or two)
	$(install) test model
	@scripts/test.py conform

.PHONY: mutants
mutants: ## Mutants of the code that plans, each of which a test must reject: make mutants [MUTANTS="--count 40"] (an hour on 2 cores)
	$(install) test model
	@tools/plan_mutants.py $(MUTANTS)

.PHONY: test-node
test-node: ## Only the stories on a real node: kubelet, containerd, device plugin, DRA driver (root)
	$(install) cluster engine
	@scripts/test.py node

.PHONY: test-page
test-page: ## Only the live page, in headless Chromium: what it shows, how soon, 5,000 nodes (PICTURES=docs/pictures takes those of docs/ instead)
	$(install) test page
	@$(if $(PICTURES),cmake --preset dev --log-level=WARNING >/dev/null && cmake --build --preset dev --target device-health-controller page_cluster && tests/page/run --shots $(PICTURES),scripts/test.py page)

.PHONY: image
image: ## Build the image with docker (IMAGE=device-health-controller:0.2.0)
	docker build --build-arg SOURCE_DATE_EPOCH="$$(git log -1 --format=%ct)" --tag $(or $(IMAGE),device-health-controller:0.2.0) .

.PHONY: test-image
test-image: ## Only the image: build it twice, look into it, run it (ten minutes, as root)
	$(install) test engine
	@scripts/test.py image

.PHONY: kind
kind: ## A cluster of kind where devices break and pods move (needs docker or podman, kind, kubectl, Go; not run in CI)
	scripts/kind.sh

.PHONY: sanitize
sanitize: ## ASan and UBSan on all tests, TSan on loopback
	$(install) test
	@scripts/test.py sanitize

.PHONY: fuzz
fuzz: ## Each fuzz target for a minute (FUZZ_SECONDS=60)
	$(install) test
	@scripts/test.py fuzz

.PHONY: lint
lint: ## clang-format, clang-tidy and go vet over every file (half an hour on 2 cores)
	$(install) lint cluster
	@scripts/test.py lint

.PHONY: lint-quick
lint-quick: ## clang-format, and of clang-tidy what finds mistakes quickly, as make verify runs it (some minutes)
	$(install) lint
	@scripts/test.py lint-quick

.PHONY: lint-changed
lint-changed: ## clang-tidy over what has changed since the last release
	$(install) lint
	@scripts/test.py lint-changed

.PHONY: format
format: ## Rewrite the C++ files in the project's format
	$(install) lint
	@scripts/lint.sh fix

.PHONY: bench
bench: ## Measure, and print one table
	$(install) test
	cmake --preset release --log-level=WARNING
	cmake --build --preset release --target bench device-health-controller
	build/release/bench
	bench/first_request.py build/release/device-health-controller

.PHONY: tune-page
tune-page: ## Write what tune prints for the trace in the tree into docs/tuning.md
	$(install) test
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release --target device-health-controller >/dev/null
	@bench/tune_page.py build/release/device-health-controller

.PHONY: bench-suspects
bench-suspects: ## Play days of simulated clusters in which it is known what breaks devices, and write how often the right one is suspected into its decision: make bench-suspects [FROM=0] [TO=10000] (an hour or more; goes on where it was stopped)
	$(install) test
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release --target suspects >/dev/null
	@bench/suspects/page.py build/release/suspects $(or $(FROM),0) $(or $(TO),10000)

.PHONY: fleet-year
fleet-year: ## Play a real fleet's year against three rivals, and write docs/evaluation.md: make fleet-year [SEEDS=20] [DAYS=348] (hours on 2 cores with 20 seeds, minutes with one)
	$(install) test
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release --target fleet-year >/dev/null
	@bench/fleet_year/page.py build/release/fleet-year seeds=$(or $(SEEDS),20) days=$(or $(DAYS),348) $(FLEET_FLAGS)

.PHONY: bench-peer
bench-peer: ## Measure beside controllers of client-go, and print tables in Markdown: make bench-peer [PEER="--pods 2000,20000,150000"] (ten minutes)
	$(install) build cluster
	cmake --preset release --log-level=WARNING
	cmake --build --preset release --target device-health-controller
	@bench/peer/run $(PEER)

.PHONY: bench-page
bench-page: ## Run both on a machine that does nothing else, and write docs/performance.md's figures anew (PEER as above)
	$(install) test cluster
	cmake --preset release --log-level=WARNING
	cmake --build --preset release --target bench device-health-controller
	bench/page.py bench peer -- $(PEER)
