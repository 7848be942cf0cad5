# Every task of this repository. `make help` lists them; `.ci/run` calls them.

PYTHON ?= python3

VENV      := .venv
BIN       := $(VENV)/bin
WORKSPACE := direct_runtime/Cargo.toml
FUZZ      := direct_runtime/fuzz/Cargo.toml
# The copy of the workspace with the planted faults (tests/proofs/faults).
WOVEN     := .proofs/faults/direct_runtime/Cargo.toml
CARGO     := cargo
# Cargo shares out processors itself: what make hands on for that is not open to commands that are no make.
ALONE     := MAKEFLAGS=
# rustup's folder, for shells that did not read its profile; the interpreter that PyO3 asks when Rust is linted.
export PATH := $(PATH):$(HOME)/.cargo/bin
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# Images of containers often set it: then each of the hundreds of processes that the tests start compiles Vesper anew.
unexport PYTHONDONTWRITEBYTECODE

# A stamp is newer than all that the step was made from; a step whose stamp is fresh is not repeated.
VENV_STAMP   := $(VENV)/.made
DEPS_STAMP   := $(VENV)/.dependencies
DIRECT_STAMP := $(VENV)/.direct
# The kernel's program, where `vesper.kernel` looks for it. CI takes the profile that its tests of Rust build anyway.
KERNEL         := vesper/kernel/bin/vesper-kernel
KERNEL_PROFILE ?= release
RUST_FILES   := $(shell find direct_runtime \( -name target -o -name fuzz \) -prune -o \
                  \( -name '*.rs' -o -name 'Cargo.toml' -o -name 'Cargo.lock' -o -name '*.toml' \) -print)

# Parts that need nothing of each other run side by side, as many as there are processors. What each prints is shown when
# it has ended, and all of them run, also after one has failed; the names of those are in a file.
JOBS        := $(shell nproc 2>/dev/null || echo 2)
FAILED      := $(VENV)/.failed
SIDE_BY_SIDE = $(MAKE) --no-print-directory --keep-going --jobs=$(JOBS) --output-sync=target

# Benchmarks have an environment of their own, on a Python that is looked for unless the command line names one.
BENCH        := .venv-bench
OPENAPI      := .venv-openapi
PACKS        := .venv-packs
PYRIGHT      := .venv-types
BENCH_PYTHON  = $(if $(findstring command line,$(origin PYTHON)),--python $(PYTHON))

EXAMPLE := payment_decision --engine both --input amount=50.00 --input balance=100.00 --input currency=USD \
           --input country=DE --input user_age_days=400

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup build run test test-rust test-python test-nodes decimal-cases corpus test-pythons check bench-lookups check-python check-types check-generated check-rust check-dependencies check-docs docs \
        bench bench-quick bench-growth bench-instructions bench-hooks bench-effects bench-host bench-errors bench-routing bench-check proof-sample proof-kills proof-migration-kills proof-policies proof-controller proof-service proof-differential proof-faults proof-mutants proof-breakpoints proof-dap proof-mutated-documents proof-fuzz proof-memory \
        proof-threads proof-batch proof-aarch64 wheels generate update fmt lock vendor clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-24s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: build ## make .venv, install the locked tools, build the Rust engine (Python 3.11+, cargo)

build: $(DIRECT_STAMP) $(KERNEL) ## the same, under the name that says what a change of Rust needs

run: build ## run the example node on both engines
	$(BIN)/vesper run $(EXAMPLE)

.PHONY: system
system: ## install the servers and data that tests need (apt-get as root or by sudo), or print what is missing
	@PYTHON=$(PYTHON) tests/support/install_system.sh

# Every part runs, also after one has failed: a wrong kernel should be shown by the verifier's smallest input too,
# not only by the first test that trips over it.
# pytest is last, because what it says of failures is the end of its output, and CI may keep only the end; and alone,
# because it keeps all processors busy itself.
test: system build ## all tests: Rust, Python, and both engines compared on every node; installs the servers they need
	@rm -f $(FAILED)
	@$(SIDE_BY_SIDE) $(addprefix part-,test-rust test-nodes decimal-cases) || [ -s $(FAILED) ]
	@$(MAKE) --no-print-directory part-test-python || [ -s $(FAILED) ]
	@echo; \
	if [ -s $(FAILED) ]; then echo "make test: FAILED: $$(tr '\n' ' ' <$(FAILED))"; exit 1; fi; \
	echo "make test: passed"; \
	echo "  Rust     cargo test of the workspace"; \
	echo "  Python   pytest"; \
	echo "  nodes    vesper verify: the two engines agree on every node"; \
	echo "  decimals the General Decimal Arithmetic cases that come with CPython, on both engines"

# A part of several: its name is kept where it fails, and how long it took is told.
part-%:
	@start=$$(date +%s); $(MAKE) --no-print-directory $*; code=$$?; \
	echo "=== $*: $$([ $$code = 0 ] && echo passed || echo FAILED) after $$(($$(date +%s) - start)) s"; \
	if [ $$code != 0 ]; then echo $* >>$(FAILED); exit $$code; fi

# vesper-py is left out: it is an extension module, which only Python can load, and Python tests it.
# Without optimisation the frames of the compilers are several times as large as in the build for users: the tests of the
# deepest nesting get a larger stack.
test-rust: export RUST_MIN_STACK = 8388608
test-rust:
	@$(call need_cargo)
	$(ALONE) $(CARGO) test --quiet --locked --manifest-path $(WORKSPACE) --workspace --exclude vesper-py
	$(ALONE) $(CARGO) test --quiet --locked --manifest-path $(FUZZ) --lib --target-dir direct_runtime/target

.PHONY: build-rust-tests
build-rust-tests:
	@$(call need_cargo)
	$(ALONE) $(CARGO) test --quiet --locked --no-run --manifest-path $(WORKSPACE) --workspace --exclude vesper-py

test-python: build
	$(BIN)/python -m pytest -q -n auto --dist worksteal

.PHONY: test-browser
test-browser: build ## Chromium drives every page of the dashboard and the playground; installs it by apt-get where it is missing
	@PYTHON=$(PYTHON) tests/support/install_system.sh chromium
	VESPER_BROWSER=1 $(BIN)/python -m pytest -q tests/browser

.PHONY: coverage coverage-rust
coverage: system build ## lines and branches of vesper/ that the Python tests run; fails below 85 %; half an hour
	@rm -rf .proofs/coverage && mkdir -p .proofs/coverage
	$(BIN)/coverage run -m pytest -q -n auto --dist worksteal
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --sort=miss | tail -40

coverage-rust: system build ## lines of the Rust crates that their tests run; needs `cargo install cargo-llvm-cov`
	@$(call need_cargo)
	RUST_MIN_STACK=8388608 $(ALONE) $(CARGO) llvm-cov --locked --manifest-path $(WORKSPACE) --workspace --exclude vesper-py --summary-only

test-nodes: build
	$(BIN)/vesper verify nodes --max-examples 60 --seed 1

# The cases come with CPython's own tests (Debian: libpython3-testsuite); without them this fails.
decimal-cases: build ## the General Decimal Arithmetic cases on both engines, with counts
	$(BIN)/python -m tests.proofs.decimal_cases.run

# pytest asks the same; this one counts.
corpus: build ## the whole corpus on every engine, with counts
	$(BIN)/python -m tests.conformance.run

# Makes .venv-3.X for each Python from 3.11 on that is here; needs no Rust. `ONLY=3.12` takes one.
test-pythons: ## the reference path on every Python here, and under odd settings of the host; minutes
	$(PYTHON) tests/proofs/versions/run.py $(if $(ONLY),--only $(ONLY))

check: build ## lint, format, types, layers, generated files; what CI asks for besides tests
	@rm -f $(FAILED)
	@$(SIDE_BY_SIDE) $(addprefix part-,check-rust check-types check-python check-generated check-dependencies check-docs check-buf check-proofs) || [ -s $(FAILED) ]
	@echo; \
	if [ -s $(FAILED) ]; then echo "make check: FAILED: $$(tr '\n' ' ' <$(FAILED))"; exit 1; fi; \
	echo "make check: passed (ruff, mypy, layers, generated files, rustfmt, clippy, dependencies, documentation, protos, proofs)"

check-python: build
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo --no-cache

check-types: build
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest vesper._direct --ignore-disjoint-bases

# The notice is about a later version of MkDocs. `check-docs` leaves out the index of the search, a third of the time.
docs: $(DEPS_STAMP) ## the documentation site, in dist/docs: every link and anchor must resolve
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file docs/site/mkdocs.yml
	@echo "dist/docs/index.html"

check-docs: $(DEPS_STAMP)
	SEARCH=false NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file docs/site/mkdocs.yml --site-dir ../../.proofs/docs/checked

check-dependencies: $(DEPS_STAMP) ## licences, bans and sources of crates by deny.toml; writes dist/sbom.cdx.json
	@$(call need_cargo)
	$(BIN)/python -m tests.proofs.packaging.dependencies

.PHONY: audit-advisories
audit-advisories: $(VENV_STAMP) ## known vulnerabilities of the locked Python packages; needs the network of a workflow
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/python -m pip_audit --require-hashes --requirement requirements.lock

check-generated: $(DEPS_STAMP)
	$(BIN)/python schemas/generate.py --check
	$(BIN)/python -m tests.proofs.faults.weave --check

# Clippy checks each library also without its tests, and so reports code that only tests use. The copy with the planted faults must compile; it shares the target
# folder, so that only the crates of the workspace are checked again.
check-rust: $(VENV_STAMP)
	@$(call need_cargo)
	$(CARGO) fmt --manifest-path $(WORKSPACE) --all --check
	$(CARGO) fmt --manifest-path $(FUZZ) --check
	$(CARGO) fmt --manifest-path direct_runtime/protos/Cargo.toml --check
	$(ALONE) $(CARGO) clippy --quiet --locked --manifest-path $(WORKSPACE) --workspace --all-targets -- -D warnings
	$(ALONE) $(CARGO) check --quiet --locked --manifest-path $(FUZZ) --bins --target-dir direct_runtime/target
	$(BIN)/python -m tests.proofs.faults.weave
	$(ALONE) $(CARGO) check --quiet --locked --manifest-path $(WOVEN) --workspace --target-dir direct_runtime/target

bench: build ## the engines beside every rival, on an optimised CPython: docs/benchmarks; PYTHON=/usr/bin/python3.11 names one; minutes
	$(BIN)/python tests/bench/environment.py --rivals $(BENCH_PYTHON)
	$(BENCH)/bin/python tests/bench/run.py

bench-quick: build ## the ratios that matter, in at most 40 s; the last line is JSON
	@$(BIN)/python tests/bench/environment.py $(BENCH_PYTHON)
	@$(BENCH)/bin/python tests/bench/quick.py

.PHONY: bench-authoring
bench-authoring: build ## 30 tasks for a model that writes nodes, with your key: MODEL=NAME of CONFIG=vesper.toml; TASKS=a,b TRIES=4
	@$(BIN)/python -m tests.bench.authoring.run --model "$(MODEL)" $(if $(CONFIG),--config "$(CONFIG)") $(if $(TASKS),--tasks "$(TASKS)") $(if $(TRIES),--tries $(TRIES))

bench-growth: build ## how cost grows with lines, steps and rows: docs/benchmarks; minutes
	$(BIN)/python tests/bench/environment.py $(BENCH_PYTHON)
	$(BENCH)/bin/python tests/bench/growth.py

bench-instructions: build ## instructions a call, by callgrind; fails when more than 3 % worse than known; UPDATE=1 writes them
	@$(BIN)/python tests/bench/environment.py $(BENCH_PYTHON)
	$(BENCH)/bin/python tests/bench/instructions.py $(if $(UPDATE),--update)

bench-hooks: build ## what tracing costs when it is off and on, in instructions beside a build that cannot trace; UPDATE=1 writes it; minutes
	@$(call need_cargo)
	@$(BIN)/python tests/bench/environment.py $(BENCH_PYTHON)
	$(ALONE) $(BENCH)/bin/python tests/bench/hooks.py $(if $(UPDATE),--update)

bench-effects: build ## measure journalled steps beside the least that they could cost; FOLDER=/path is on the disk to measure
	$(BIN)/python tests/bench/effects.py $(FOLDER)

bench-host: build ## measure a payment order beside a plain service and DBOS, its syncs and waiting runs; UPDATE=1 writes today's ratios
	@$(BIN)/python tests/bench/environment.py --host $(BENCH_PYTHON)
	$(BENCH)/bin/python tests/bench/host.py $(if $(UPDATE),--update)

.PHONY: bench-queue
bench-queue: build ## queued tasks from enqueue to done beside DBOS and Celery; starts all servers; the last line is JSON
	@$(BIN)/python tests/bench/environment.py --queue $(BENCH_PYTHON)
	$(BENCH)/bin/python -m tests.bench.queues.run

.PHONY: bench-agents
bench-agents: build ## first chunks and memory of agents beside the official SDKs, Pydantic AI and LangGraph; UPDATE=1 writes them; the last line is JSON; minutes
	@$(BIN)/python tests/bench/environment.py --agents $(BENCH_PYTHON)
	$(BENCH)/bin/python -m tests.bench.agents.run $(if $(UPDATE),--update)

.PHONY: bench-kernel
bench-kernel: build ## RPCs a second of the kernel beside a server of grpc.aio, and memory of 100,000 processes; UPDATE=1 writes them; the last line is JSON
	@$(call need_cargo)
	@$(BIN)/python tests/bench/environment.py --kernel $(BENCH_PYTHON)
	$(ALONE) $(BENCH)/bin/python -m tests.bench.kernel.run $(if $(UPDATE),--update)

.PHONY: bench-data
bench-data: build ## payments on Ray beside run_batch, in polars and DuckDB beside their own ways; the last line is JSON; minutes
	@$(BIN)/python tests/bench/environment.py --data $(BENCH_PYTHON)
	$(BENCH)/bin/python tests/bench/data/run.py

bench-errors: build ## measure calls and rows that end without outputs beside those that return, against their bars; UPDATE=1 writes them
	$(BIN)/python -m tests.bench.errors $(if $(UPDATE),--json docs/benchmarks/errors.json)

bench-observe: build ## measure an unsampled pure call with and without counting; the last line is JSON
	$(BIN)/python -m tests.bench.observe.counting

bench-routing: build ## measure what routing costs over the bare engines; minutes
	@$(BIN)/python tests/bench/environment.py $(BENCH_PYTHON)
	$(BENCH)/bin/python tests/bench/routing.py

.PHONY: bench-serve
bench-serve: build ## measure `vesper serve` beside axum, FastAPI, Litestar, BlackSheep and Robyn, by wrk; the last line is JSON; minutes
	@$(call need_cargo)
	@$(BIN)/python tests/bench/environment.py --serve $(BENCH_PYTHON)
	$(ALONE) $(BENCH)/bin/python tests/bench/serve/run.py

bench-lookups: build ## measure the check of a table of 100,000 rows and calls beside 10 rows
	$(BIN)/python tests/bench/tables/lookups.py

bench-check: build ## measure `vesper check` of a thousand nodes; PYTHON=/usr/bin/python3.11 measures that interpreter
	$(BIN)/python tests/bench/check_speed.py $(if $(findstring command line,$(origin PYTHON)),--python $(PYTHON))

# pytest runs a sample of each other proof.
SAMPLES := budgets bus kernel limits waves fuzz documents programs replay memory threads batch deopt code-memory faults mutants kills migration-kills controller interrupts observe serve http openapi lsp

proof-sample: build ## a sample of every proof, as CI takes it
	@rm -f $(FAILED)
	@$(SIDE_BY_SIDE) $(addprefix part-sample-,$(SAMPLES)) || [ -s $(FAILED) ]
	@$(MAKE) --no-print-directory part-sample-service || [ -s $(FAILED) ]
	@echo; \
	if [ -s $(FAILED) ]; then echo "make proof-sample: FAILED: $$(tr '\n' ' ' <$(FAILED))"; exit 1; fi; \
	echo "make proof-sample: passed"

.PHONY: $(addprefix sample-,$(SAMPLES) service)
sample-budgets:
	$(BIN)/python -m tests.proofs.budgets.campaign --calls 600 --kills 2 --processes 2 --no-write --folder .proofs/sample-budgets
sample-kernel:
	$(BIN)/python -m tests.proofs.kernel.campaign --kills 4 --no-write --folder .proofs/sample-kernel
sample-bus:
	$(BIN)/python -m tests.proofs.bus.campaign --publishers 20 --messages 50 --part 25 --kills 2 --payload 40000 --pause 0.5 --work 0.002 --no-write --folder .proofs/sample-bus
sample-documents:
	$(BIN)/python tests/proofs/robustness/mutate.py --documents 700 --seed 2
sample-programs:
	$(BIN)/python tests/proofs/differential/campaign.py --executions 4000 --programs 40 --seed 2
sample-replay:
	$(BIN)/python -m tests.proofs.replay.replay --executions 150 --payments 4
sample-memory:
	$(BIN)/python tests/proofs/robustness/memory.py --calls 200000
sample-threads:
	$(BIN)/python tests/proofs/robustness/threads.py --calls 5000
sample-batch:
	$(BIN)/python tests/proofs/robustness/batch.py --rows 1000000
# Ten seconds are for what is found at once: the targets are built in less time than those of the whole proof.
sample-fuzz: export CARGO_PROFILE_RELEASE_OPT_LEVEL = 1
sample-fuzz: export CARGO_PROFILE_RELEASE_DEBUG = false
sample-fuzz:
	@$(call need_cargo)
	$(ALONE) $(BIN)/python tests/proofs/robustness/fuzz.py --seconds 10 --without-host
sample-deopt:
	$(BIN)/python tests/proofs/differential/deopt.py --guards 3 --drawn 2
sample-code-memory:
	$(BIN)/python tests/proofs/robustness/machine_code.py --nodes 240
sample-faults:
	@$(call need_cargo)
	$(BIN)/python -m tests.proofs.faults.weave
	$(ALONE) $(CARGO) test --quiet --locked --manifest-path $(WOVEN) --package vesper-ir --lib fault \
	  --target-dir direct_runtime/target
# Every fresh seed must fit: small, and only as far as the compiler says which mutants are Rust.
sample-mutants:
	@$(call need_cargo)
	$(ALONE) $(BIN)/python -m tests.proofs.mutants.drawn.sample
sample-interrupts:
	$(BIN)/python tests/proofs/waiting/interrupts.py --count 30 --max-ttl 1 --any-lateness
sample-kills:
	$(BIN)/python tests/proofs/kills/campaign.py --kills 8
sample-migration-kills:
	$(BIN)/python tests/proofs/migration/kill_store.py --kills 12
sample-controller:
	$(BIN)/python -m tests.proofs.migration.controller --sample
sample-serve:
	$(BIN)/python -m tests.proofs.serving.payments --seconds 10 --kill-every 4 --reload-every 3
sample-http:
	$(BIN)/python -m tests.proofs.serving.misuse --seconds 4 --connections 500
# Without Schemathesis, whose environment takes a minute to install: every example of the document is sent.
sample-openapi:
	$(BIN)/python -m tests.proofs.serving.examples
sample-lsp:
	$(BIN)/python -m tests.proofs.editor.run --nodes 100 --edits 20
sample-observe:
	$(BIN)/python -m tests.proofs.observe.run --sample
# Alone: it asks the service for half of what one processor can do.
sample-service:
	$(BIN)/python tests/proofs/service/run.py --sample

proof-kills: build ## a thousand processes killed in the middle of effects, on SQLite and Postgres, and losses of power; minutes
	$(BIN)/python tests/proofs/kills/campaign.py

.PHONY: proof-escapes
proof-escapes: build ## an injected model tries to leave what was granted to its agent; nothing is performed without grant; a minute
	$(BIN)/python -m tests.proofs.escapes.campaign

.PHONY: proof-sleepers proof-interrupts
proof-sleepers: build ## 100,000 sleeping runs woken once each, on time, by eight processes under a thousand kills, on SQLite and Postgres; half an hour on a quiet machine
	$(BIN)/python tests/proofs/waiting/sleepers.py

proof-interrupts: build ## a thousand questions with short times to live: answers race expiry, on SQLite and Postgres; minutes on a quiet machine
	$(BIN)/python tests/proofs/waiting/interrupts.py

proof-migration-kills: build ## five hundred processes killed while they write migration state, on SQLite, Redis and Postgres; resumable, minutes
	$(BIN)/python tests/proofs/migration/kill_store.py
	$(BIN)/python tests/proofs/migration/kill_calls.py

.PHONY: proof-candidates
proof-candidates: build ## two thousand processes with a live candidate killed at random moments, on SQLite and Postgres; the candidate performs nothing; resumable, an hour
	$(BIN)/python -m tests.proofs.candidates.campaign

.PHONY: proof-topics
proof-topics: build ## 100,000 events each on Redis, a Postgres outbox and Kafka, with consumers killed and stopped; needs Java and Maven; resumable, half an hour
	$(BIN)/python tests/proofs/topics/run.py

.PHONY: proof-data
proof-data: build ## ten million payments locally, in polars, DuckDB and on Ray, with a worker and the driver killed, have one result; resumable, minutes
	$(BIN)/python tests/proofs/data/run.py

.PHONY: proof-spark
proof-spark: build ## the Spark example of the documentation on a local Spark, which is downloaded; needs Java 17; minutes
	$(BIN)/python tests/proofs/data/spark.py

.PHONY: proof-stalls
proof-stalls: build ## a planted sleep of 30 seconds in a kernel stalls no other thread; builds a copy of the engine, minutes
	$(BIN)/python tests/proofs/stalls/run.py

proof-controller: build ## the migration controller under simulated traffic: ten thousand seeds of a million requests; ten minutes
	$(BIN)/python -m tests.proofs.migration.controller

proof-service: build ## payments under load through all five modes, with a direct engine that lies, aborts and hangs; half an hour on a quiet machine
	@$(BIN)/python tests/bench/environment.py --service $(BENCH_PYTHON)
	$(BENCH)/bin/python tests/proofs/service/run.py

.PHONY: proof-serve proof-http proof-openapi
proof-serve: build ## the payment handler served by two workers that are killed and reloaded under load: every order is charged once; 6 minutes
	$(BIN)/python -m tests.proofs.serving.payments

proof-http: build ## slow, oversized, malformed and smuggled requests, 15,000 connections, 60 minutes of fuzzed HTTP; resumable
	$(BIN)/python -m tests.proofs.serving.misuse

.PHONY: proof-watchers
proof-watchers: build ## what fifty watchers of live pages cost the callers of a service at half load; minutes on a quiet machine
	$(BIN)/python -m tests.proofs.web.watchers

.PHONY: proof-web-attacks
proof-web-attacks: build ## forged requests, 200 scripts in stored and sent texts, framing, paths, roles and limits of the dashboard; minutes
	$(BIN)/python -m tests.proofs.web.attacks

# Needs Node.js and npm for the client in TypeScript.
proof-openapi: build ## Schemathesis and two generated clients against the shipped handlers; minutes
	@[ -x $(OPENAPI)/bin/st ] || { $(BIN)/python -m venv --clear $(OPENAPI) && \
	  $(OPENAPI)/bin/python -m pip install --quiet --no-deps -r tests/proofs/serving/requirements-openapi.txt; }
	$(BIN)/python -m tests.proofs.serving.openapi

.PHONY: proof-packs
proof-packs: build ## AWS signatures against botocore's, and nodes that use S3, SQS and secrets of a moto server on both engines; a minute
	@[ -x $(PACKS)/bin/moto_server ] || { $(BIN)/python -m venv --clear $(PACKS) && \
	  $(PACKS)/bin/python -m pip install --quiet --no-deps -r tests/proofs/packs/requirements.txt; }
	$(BIN)/python -m tests.proofs.packs.run

.PHONY: proof-docs
proof-docs: build ## Chromium visits every page of the documentation site: axe, links, 360 px, search; needs Chromium, Node.js and npm; minutes
	$(BIN)/python -m tests.proofs.site.run

# Needs Node.js and npm for pyright.
.PHONY: proof-types
proof-types: build ## mypy and pyright on an application that uses all of the API, on the stubs of every node, and on deliberate mistakes; a minute
	@[ -x $(PYRIGHT)/node_modules/.bin/pyright ] || npm install --silent --no-audit --no-fund --prefix $(PYRIGHT) pyright@1.1.414
	$(BIN)/python -m tests.proofs.typing.run $(abspath $(PYRIGHT))/node_modules/.bin/pyright

.PHONY: proof-compare
proof-compare: build ## 300 planted changes and 60 refactorings of nodes under vesper compare; resumable, half an hour on a quiet machine
	$(BIN)/python -m tests.proofs.comparing.campaign

.PHONY: proof-observe
proof-observe: build ## spans and counters of two services through a real collector, and an alert of a real Prometheus; needs Go; minutes
	$(BIN)/python -m tests.proofs.observe.run

.PHONY: proof-lsp
proof-lsp: build ## the language server: every feature, and 200 changes in a collection of 1,000 nodes; minutes
	$(BIN)/python -m tests.proofs.editor.run

.PHONY: proof-code-points
proof-code-points: build ## every code point through every operation of one string, on both engines; minutes
	$(BIN)/python -m tests.conformance.test_every_code_point

proof-policies: build ## limits, breakers and retries under load; a million stories on the machines and their reference; resumable, minutes
	$(BIN)/python -m tests.proofs.policies.load
	$(BIN)/python tests/proofs/policies/machines.py

.PHONY: proof-limits sample-limits proof-waves sample-waves
proof-limits: build ## requests and tokens of models, breakers and retries, in the machines and through a Host; minutes
	$(BIN)/python -m tests.proofs.limits.campaign
sample-limits:
	$(BIN)/python -m tests.proofs.limits.campaign --sample

proof-waves: build ## calls and tools side by side in the time of one, and 10,000 random schedules on both engines; minutes
	$(BIN)/python -m tests.proofs.waves.campaign
sample-waves:
	$(BIN)/python -m tests.proofs.waves.campaign --sample

.PHONY: proof-machines
proof-machines: build ## a million random sequences of commands on the kernel's machines and on their reference in Python; resumable, minutes
	@$(call need_cargo)
	KERNEL_PROFILE=release $(ALONE) $(BIN)/python -m tests.proofs.machines.campaign

.PHONY: proof-queues
proof-queues: build ## limits of keys under 64 workers, 15,000 failed runs retried in bulk, with kills; SQLite and PostgreSQL; minutes
	$(BIN)/python -m tests.proofs.queues.campaign

.PHONY: proof-supervision
proof-supervision: build ## workers of agents killed 100 times, and their sender, under 10,000 messages: none lost, none doubled; resumable, minutes
	$(BIN)/python -m tests.proofs.supervision.campaign

.PHONY: proof-kernel
proof-kernel: build ## kernel and worker killed 200 times under pipelines with routes, a loop, branches and a person: no step twice, no process lost; resumable, minutes
	$(BIN)/python -m tests.proofs.kernel.campaign

.PHONY: proof-cancel
proof-cancel: build ## 200 agents cancelled at random times: connections closed within 500 ms, nothing more performed; resumable, minutes on a quiet machine
	$(BIN)/python -m tests.proofs.cancel.campaign

.PHONY: proof-bus
proof-bus: build ## 1,000 publishers send 1,000 messages each to slow, dropping and killed subscribers of the kernel's bus: none lost, order kept, memory bounded; resumable, minutes
	$(BIN)/python -m tests.proofs.bus.campaign

.PHONY: proof-budgets
proof-budgets: build ## 64 tasks make 10,000 requests inside nested budgets in memory, Redis and PostgreSQL, under kills: never over, nothing reserved at the end; resumable, minutes
	$(BIN)/python -m tests.proofs.budgets.campaign

.PHONY: proof-numbers
proof-numbers: build ## roots, exponentials, logarithms and powers of 100,000 random decimals each, on both engines, against an oracle of more digits; minutes
	$(BIN)/python -m tests.proofs.numbers.campaign

.PHONY: proof-claims check-proofs
proof-claims: build ## proves the claims of all nodes, runs each refutation and tries each proof with 100,000 inputs; resumable, minutes
	$(BIN)/python -m tests.proofs.claims.campaign

# Only nodes whose hash differs from the committed one are proven, and one in ten of the others.
check-proofs: build ## clauses that nodes/vesper.proofs.json has as proven still are
	$(BIN)/vesper prove --check --no-cache --time-limit 30

.PHONY: proof-schedules
proof-schedules: build ## eight processes with five scheduled jobs, killed and stopped over the clock changes of three zones: each of 1,000 due times as its policy says, once; resumable, minutes
	$(BIN)/python -m tests.proofs.schedules.campaign

.PHONY: proof-zones
proof-zones: build ## every change of every time zone from 1970 to 2037 and 100,000 random moments on both engines, against zoneinfo on the same data; minutes
	$(BIN)/python -m tests.proofs.zones.campaign

.PHONY: proof-grants
proof-grants: build ## every function of PostgreSQL and SQLite in SQL under a grant of one table: nothing outside it is touched; minutes
	$(BIN)/python tests/proofs/grants/campaign.py

proof-differential: build ## a million inputs of nodes, 20,000 random programs, on both engines; resumable, half an hour
	$(BIN)/python tests/proofs/differential/campaign.py

.PHONY: proof-dmn
proof-dmn: build ## the models of the DMN TCK, imported and run on both engines
	$(BIN)/python -m tests.proofs.importers.dmn.run --write

.PHONY: proof-preconditions
proof-preconditions: build ## 5,000 preconditions of random shape around planted solutions: drawn inputs meet them; resumable, minutes
	$(BIN)/python tests/proofs/preconditions/campaign.py

proof-mutated-documents: build ## 100,000 damaged documents through the front end; resumable, minutes
	$(BIN)/python tests/proofs/robustness/mutate.py

proof-fuzz: build ## ten minutes of libFuzzer on IR bytes, values and HTTP answers
	@$(call need_cargo)
	$(BIN)/python tests/proofs/robustness/fuzz.py

# Needs llvm-symbolizer (Debian: llvm) and a C compiler.
.PHONY: proof-coverage
proof-coverage: build ## edges of the Rust engine that nodes, programs and variants reach; keeps programs that reach new ones; minutes
	@$(call need_cargo)
	$(BIN)/python tests/proofs/coverage/run.py

.PHONY: proof-taint
proof-taint: build ## 200 random nodes, two runs each that differ only in sensitive data: all that is shown is equal; minutes
	$(BIN)/python -m tests.proofs.taint.taint

.PHONY: proof-explain
proof-explain: build ## 10,000 random executions: explanations are those of the marks on every engine; 1,000 nearest inputs; minutes
	$(BIN)/python tests/proofs/explanation/campaign.py

.PHONY: proof-conversations
proof-conversations: build ## 200 recorded conversations of agents replay on every engine, and as cases, without a request to a model; minutes
	$(BIN)/python -m tests.proofs.conversations.campaign

.PHONY: proof-costs
proof-costs: build ## 500 random agents spend at most what `vesper nodes cost` computes; minutes
	$(BIN)/python -m tests.proofs.agents.costs

.PHONY: proof-replay
proof-replay: build ## ten thousand recorded executions of all nodes with effects replay just as they were; minutes
	$(BIN)/python -m tests.proofs.replay.replay

.PHONY: proof-zen
proof-zen: build ## the models of zen, imported: their tests on both engines, and a table of what is not translated; a thousand random models against a reference; minutes
	$(BIN)/python -m tests.proofs.importers.zen.compare
	$(BIN)/python tests/proofs/importers/zen/random_models.py

.PHONY: proof-growth
proof-growth: build ## nodes that grow in 47 ways end at the same limit on every engine, in bounded memory; minutes
	$(BIN)/python -m tests.proofs.growth.run

.PHONY: proof-tables
proof-tables: build ## gaps, overlaps and values of random decision tables against a brute-force oracle; a minute
	$(BIN)/python -m tests.proofs.tables.run

.PHONY: proof-backtest
proof-backtest: build ## a million journalled payments and a changed fee row, replayed natively, against a brute-force oracle; resumable, minutes
	$(BIN)/python -m tests.proofs.backtest.campaign

proof-memory: build ## ten million calls of the Rust engine in memory that does not grow; minutes
	$(BIN)/python tests/proofs/robustness/memory.py

.PHONY: proof-deopt proof-code-memory bench-jit
proof-deopt: build ## every guard of the machine code of every node fails once, and nothing changes; minutes
	$(BIN)/python tests/proofs/differential/deopt.py

proof-code-memory: build ## ten thousand nodes compiled to machine code and dropped in memory that does not grow; minutes
	$(BIN)/python tests/proofs/robustness/machine_code.py

bench-jit: build ## how long machine code of 50 steps takes to make, and what callers notice of it
	@$(BIN)/python tests/bench/environment.py $(BENCH_PYTHON)
	$(BENCH)/bin/python tests/bench/jit_latency.py

proof-threads: build ## eight threads with a million calls each, asyncio, forks: all see the same; minutes
	$(BIN)/python tests/proofs/robustness/threads.py

proof-batch: build ## ten million rows through a node as a stream, within 500 MB; minutes
	$(BIN)/python tests/proofs/robustness/batch.py

wheels: $(DEPS_STAMP) ## dist/: sdist and a wheel for each Python here, each installed and tried without Rust; minutes
	@$(call need_cargo)
	$(BIN)/python tests/proofs/packaging/wheels.py $(if $(ONLY),--only $(ONLY)) $(if $(MACHINE),--machine $(MACHINE))

# Needs root, QEMU, a linker for that machine and debootstrap: the head of the script says how.
proof-aarch64: build ## the engines on aarch64, under QEMU: the corpus and `vesper verify`; RUSTC names a compiler; resumable, half an hour
	$(BIN)/python tests/proofs/packaging/aarch64.py $(if $(RUSTC),--rustc $(RUSTC))

.PHONY: proof-completion
proof-completion: build ## bash, zsh and fish complete node ids among a thousand nodes; needs the three shells; a minute
	$(BIN)/python -m tests.proofs.terminal.completion

proof-dap: build ## Microsoft's test client of the Debug Adapter Protocol drives `vesper debug`; needs Node.js and npm; half a minute
	$(BIN)/python -m tests.proofs.debugger.dap

.PHONY: vscode proof-vscode proof-neovim
# Needs Node.js and npm.
vscode: $(DEPS_STAMP) ## pack the extension of VS Code: dist/vesper-VERSION.vsix
	$(BIN)/python -m tests.proofs.vscode.pack

proof-vscode: build ## the packed extension by a scripted client, its grammar and the JSON Schema; needs Node.js and npm; a minute
	$(BIN)/python -m tests.proofs.vscode.run

proof-neovim: build ## Neovim of Debian 13, unpacked from its packages, edits a broken node with `vesper lsp`; half a minute
	$(BIN)/python -m tests.proofs.editor.neovim

proof-breakpoints: build ## planted faults of the Rust engine: does `--break-on divergence` stop at the first differing step; minutes
	$(BIN)/python -m tests.proofs.debugger.breakpoints

proof-faults: build ## planted faults of the Rust engine against the corpus and the verifier; resumable, minutes
	@$(call need_cargo)
	$(BIN)/python tests/proofs/mutants/planted.py

proof-mutants: build ## mutants of the Rust engine, drawn at random, against the verifier, the corpus and the tests; resumable, hours
	@$(call need_cargo)
	$(ALONE) $(BIN)/python tests/proofs/mutants/drawn/run.py

generate: $(DEPS_STAMP) ## rewrite what derives from schemas/
	$(BIN)/python schemas/generate.py

.PHONY: generate-protos check-protos check-buf release-protos
PROTOS := schemas/proto
# Buf compares with released.binpb there, the messages of the last release.
BUF_FOLDER := $(CURDIR)/.proofs/buf
BUF := $(BUF_FOLDER)/node_modules/.bin/buf
PROTO_CODE := direct_runtime/crates/vesper-kernel/src/proto
PYTHON_PROTOS = $(BIN)/python -m grpc_tools.protoc --proto_path $(PROTOS) --python_out=$(1) --pyi_out=$(1) \
                $$(cd $(PROTOS) && find vesper/kernel/v1 -name '*.proto' | LC_ALL=C sort)

generate-protos: $(DEPS_STAMP) ## rewrite the Rust and Python messages of schemas/proto, and the table of RPCs
	@$(call need_cargo)
	$(CARGO) run --quiet --locked --manifest-path direct_runtime/protos/Cargo.toml --target-dir direct_runtime/target/protos -- $(PROTOS) $(PROTO_CODE)
	find $(PROTOS) -name '*.proto' | LC_ALL=C sort | xargs sha256sum >$(PROTO_CODE)/sources.sha256
	$(call PYTHON_PROTOS,.)
	$(BIN)/python schemas/generate.py

$(BUF):
	@command -v npm >/dev/null || { echo "error: no npm: install Node.js with npm (Debian: apt-get install nodejs npm)" >&2; exit 1; }
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(BUF_FOLDER) @bufbuild/buf@1.75.0

check-buf: $(BUF) $(DEPS_STAMP) ## lint schemas/proto, and compare it with the messages of the last release
	cd $(PROTOS) && $(BUF) lint && $(BUF) breaking --against released.binpb
	$(BIN)/python -m tests.proofs.protos.changes $(BUF)

release-protos: $(BUF) ## write the messages that later versions have to understand; part of a release
	cd $(PROTOS) && $(BUF) build --exclude-source-info --output released.binpb

check-protos: $(DEPS_STAMP) check-buf ## compare the Rust and Python messages with schemas/proto, and schemas/proto with the last release
	@$(call need_cargo)
	@rm -rf dist/protos dist/python-protos && mkdir -p dist/protos dist/python-protos
	$(CARGO) run --quiet --locked --manifest-path direct_runtime/protos/Cargo.toml --target-dir direct_runtime/target/protos -- $(PROTOS) dist/protos
	diff --recursive --exclude=sources.sha256 dist/protos $(PROTO_CODE)
	$(call PYTHON_PROTOS,dist/python-protos)
	diff --recursive --exclude=__init__.py --exclude=__pycache__ dist/python-protos/vesper/kernel/v1 vesper/kernel/v1

update: build ## rewrite goldens and snapshots; read the diff before you commit it
	$(BIN)/python -m pytest -q --update

fmt: $(DEPS_STAMP) ## format Python and Rust, fix what ruff can fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(CARGO) fmt --manifest-path $(WORKSPACE) --all
	$(CARGO) fmt --manifest-path $(FUZZ)

lock: $(VENV_STAMP) ## resolve requirements*.in again, to the newest versions, for every Python from 3.11 on
	$(BIN)/python -m pip install --quiet uv
	$(call compile_lock,requirements)
	$(call compile_lock,requirements-dev)
	$(MAKE) setup

vendor: ## bundle the editor of `vesper play` again (node, npm); its files and their hashes are committed
	cd tests/support/vendor/monaco && npm ci --no-audit --no-fund && node build.mjs

clean: ## remove what the other targets made
	rm -rf $(VENV) $(BENCH) $(OPENAPI) $(PACKS) .venv-3.* direct_runtime/target dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache \
	  .proofs .vesper
	rm -rf vesper/_direct*.so vesper/kernel/bin
	find vesper schemas tests -name __pycache__ -prune -exec rm -rf {} +

$(VENV_STAMP):
	@command -v $(PYTHON) >/dev/null || \
	  { echo "error: no $(PYTHON): install Python 3.11 or newer (Debian: apt-get install python3 python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $$($(PYTHON) --version) is too old: Vesper needs 3.11; name another with make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "error: $(PYTHON) has no venv module (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@$(call need_cargo)
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# uv downloads and unpacks on all processors (measured from an empty cache: 49 s, by pip 94 s).
$(DEPS_STAMP): requirements-dev.lock tests/support/install_locked.py $(VENV_STAMP)
	$(BIN)/python tests/support/install_locked.py requirements-dev.lock
	@touch $@

# An editable install by the locked maturin: vesper/_direct*.so in release mode, and .venv/bin/vesper.
$(DIRECT_STAMP): $(DEPS_STAMP) pyproject.toml requirements.lock $(RUST_FILES)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --no-deps --no-build-isolation --editable .
	@touch $@

$(KERNEL): $(VENV_STAMP) $(RUST_FILES)
	@$(call need_cargo)
	$(ALONE) $(CARGO) build --quiet --locked --manifest-path $(WORKSPACE) --package vesper-kernel-grpc --profile $(KERNEL_PROFILE)
	@mkdir -p $(@D)
	install -m 755 direct_runtime/target/$(if $(filter dev,$(KERNEL_PROFILE)),debug,$(KERNEL_PROFILE))/vesper-kernel $@.new
	@mv $@.new $@

define need_cargo
command -v $(CARGO) >/dev/null || \
  { echo "error: no cargo: install Rust with rustup (Debian's own package is too old)" >&2; exit 1; }
endef

define compile_lock
UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
  --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --output-file $(1).lock $(1).in
endef
