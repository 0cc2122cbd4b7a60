# Every command that people and CI run. `make help` lists them; `make test` is the README's test command.
CARGO ?= cargo
TOOLS := target/tools
DENY := $(TOOLS)/bin/cargo-deny
DENY_VERSION := 0.20.2
PYTHON_BIN := .venv-test/bin
PYTHON := $(PYTHON_BIN)/python
PYTHON_STAMP := .venv-test/stamp
PYTHON_NEEDS := python/tests/requirements.txt
PYTHON_CODE := conftest.py python docs lab/python examples/python
# The oldest Rust that the crates promise to build with.
RUST_VERSION = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
# Tests that cannot run append a line to it, which names the test and the reason.
export PHEX_SKIPPED := $(abspath target/skipped.txt)
# Property tests draw the same cases each time, so that a commit passes or fails once and for all. `cargo test` draws others.
export PROPTEST_RNG_SEED ?= 20261119

.PHONY: help test fmt clippy doc unit truth attack fuzz sbom theorem candle cuda cuda-emulated deny advisories python docs package msrv names wheel demo \
  bench bench-python bench-reconcile peers peers-check schema clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The parts, cheapest first. The end of the output has the time of each part and what was skipped.
PARTS := fmt names clippy doc msrv unit cuda deny package python docs
test: ## every check and test, cheapest first
	@mkdir -p target && rm -f "$(PHEX_SKIPPED)" target/times.txt
	@for part in $(PARTS); do \
	  echo "== make $$part"; start=$$(date +%s); \
	  $(MAKE) --no-print-directory $$part || exit 1; \
	  printf '%6d s  %s\n' $$(( $$(date +%s) - start )) $$part >> target/times.txt; \
	done
	@echo "== all parts passed"; cat target/times.txt
	@if [ -s "$(PHEX_SKIPPED)" ]; then \
	  echo "== skipped: $$(wc -l < "$(PHEX_SKIPPED)") tests could not run here; how many, and why:"; \
	  sed 's/^[^ ]*: //' "$(PHEX_SKIPPED)" | sort | uniq -c | sort -rn; \
	else echo "== no test was skipped"; fi

fmt: ## whether the Rust code is formatted
	$(CARGO) fmt --all --check

clippy: ## lints of the Rust code, warnings denied
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings

doc: ## the documentation of the crates
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --lib --no-deps --locked

# Some tests exchange files with the real dimod and dwave-samplers, so this needs the Python environment.
unit: $(PYTHON_STAMP) ## tests of the Rust crates
	PHEX_PYTHON="$(abspath $(PYTHON))" $(CARGO) test --workspace --exclude phex-candle --locked

candle: ## tests of phex-candle, which `make test` only lints
	$(CARGO) test --locked -p phex-candle

# Exact engines against enumeration with exact sums, on graphs and rows that aim at weak spots.
PAIRS ?= 1000000
truth: ## exact engines against enumeration, a million graphs with a row: make truth PAIRS=1000000
	PHEX_TRUTH=$(PAIRS) $(CARGO) test --locked -p phex --test behaviour -- --nocapture exact_engines_tell_the_truth

# Edited files, claims, kills, full disks, closed pipes, two writers, limits; every attack has a seed.
ATTACKS ?= 10000
KILLS ?= 1000
attack: ## attacks on the command line; ends with a table: make attack ATTACKS=10000 KILLS=1000
	PHEX_ATTACK=$(ATTACKS) PHEX_KILLS=$(KILLS) $(CARGO) test --locked -p phex-cli --test behaviour -- --nocapture attacks_have_no_findings

# Goes on from the seeds; what it finds on the way stays in fuzz/corpus. A finding is in fuzz/artifacts.
SECONDS ?= 60
FUZZ_TARGETS := graphs tables evidence bundles checkpoints uai ising infer_oracle
fuzz: ## every reader and exact inference on made-up bytes: make fuzz SECONDS=60
	@if ! rustup toolchain list 2>/dev/null | grep -q nightly; then \
	  echo "make fuzz: skipped, because there is no nightly compiler: rustup toolchain install nightly"; \
	elif ! rustup run nightly cargo fuzz --version >/dev/null 2>&1; then \
	  echo "make fuzz: skipped, because there is no cargo-fuzz: cargo install cargo-fuzz"; \
	else for target in $(FUZZ_TARGETS); do \
	  mkdir -p fuzz/corpus/$$target; \
	  echo "== $$target"; \
	  rustup run nightly cargo fuzz run --fuzz-dir fuzz --sanitizer none $$target \
	    fuzz/corpus/$$target fuzz/seeds/$$target -- -max_total_time=$(SECONDS) -print_final_stats=1 || exit 1; \
	done; fi

sbom: ## the dependencies of the command as a software bill of materials, in target/sbom.json
	$(CARGO) metadata --locked --format-version 1 | python3 lab/python/sbom.py > target/sbom.json

# Reconciled rows against every legal truth, and engines against each other and a conic solver.
TRIPLES ?= 1000000
PROBLEMS ?= 500
theorem: ## reconciled rows are never worse: make theorem TRIPLES=1000000 PROBLEMS=500
	PHEX_TRIPLES=$(TRIPLES) PHEX_THEOREM=$(PROBLEMS) $(CARGO) test --locked -p phex --test behaviour -- --nocapture reconcile::

names: ## type names with three or more definitions: at most 8 may exist
	lab/names.sh 8

$(PYTHON_STAMP): $(PYTHON_NEEDS)
	python3 -m venv .venv-test
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --requirement $(PYTHON_NEEDS)
	touch $@

# Builds in release mode, as `cargo run --release -- demo` does, so that most crates are compiled once.
python: $(PYTHON_STAMP) ## the Python package: build, lint, types, stubs, tests
	VIRTUAL_ENV="$(abspath .venv-test)" $(PYTHON_BIN)/maturin develop --release --locked --quiet
	$(PYTHON_BIN)/ruff format --check --quiet $(PYTHON_CODE)
	$(PYTHON_BIN)/ruff check --quiet $(PYTHON_CODE)
	$(PYTHON_BIN)/mypy
	$(PYTHON) -m pytest

# The documentation site, in docs/_build/html. Needs the package built by `make python`.
docs: $(PYTHON_STAMP) ## the documentation site, in docs/_build/html
	$(PYTHON_BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

# The wheel runs on any Linux with this kind of CPU and Python 3.11 or newer.
wheel: $(PYTHON_STAMP) ## a Python wheel, in dist/
	$(PYTHON_BIN)/maturin build --release --locked --out dist

# An emulated driver runs the CUDA kernels on the CPU, which tests answers and memory faults. If PyTorch has installed NVRTC,
# the kernels are also compiled with it. Needs a C++ compiler.
EMULATED := LD_LIBRARY_PATH="$(abspath target/emulator)" PHEX_CUDA_CACHE="$(abspath target/emulator/kernels)" \
  EMULATOR_NVRTC="$$(ls $(abspath .venv-test)/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.?? 2>/dev/null | head -n 1)"
cuda-emulated: ## all tests of the CUDA kernels on an emulated driver (slow)
	crates/phex-cuda/emulator/build.sh target/emulator
	$(EMULATED) $(CARGO) test --locked -p phex-cuda --test memory
	$(EMULATED) EMULATOR_MEMORY=8000000000 $(CARGO) test --locked -p phex-cuda --test behaviour
	$(EMULATED) EMULATOR_MEMORY=8000000000 $(CARGO) test --locked -p phex-cli --test behaviour device::

# Three quick tests of the kernels. It is an error if a name matches no test.
CUDA_TESTS := messages_of_few_strengths_agree ordinary_rows_stay_on_the_device extreme_rows_are_answered_all_the_same
cuda: $(PYTHON_STAMP) ## quick tests of the CUDA kernels on an emulated driver
	@if command -v $${CXX:-g++} >/dev/null; then \
	  crates/phex-cuda/emulator/build.sh target/emulator && \
	  $(EMULATED) EMULATOR_MEMORY=8000000000 $(CARGO) test --workspace --exclude phex-candle --locked \
	    --test behaviour -- $(CUDA_TESTS) > target/cuda.txt; status=$$?; grep -v ' 0 passed\|^running 0\|^$$' target/cuda.txt; \
	  [ $$status -eq 0 ] && grep -q 'test result: ok. $(words $(CUDA_TESTS)) passed' target/cuda.txt; \
	else echo "make cuda: there is no C++ compiler" | tee -a "$(PHEX_SKIPPED)"; fi

# Installs the tool once, into target/.
deny: $(DENY) ## licences, sources and bans of the dependencies
	PATH="$(abspath $(TOOLS)/bin):$$PATH" $(CARGO) deny --log-level error check bans licenses sources

# The database is a repository that is cloned, so it is not part of `make test`.
ADVISORIES := https://github.com/RustSec/advisory-db
advisories: ## known vulnerabilities of the dependencies, where their database can be had
	@mkdir -p target
	@if ! GIT_TERMINAL_PROMPT=0 timeout 60 git ls-remote --exit-code $(ADVISORIES) HEAD > target/advisories.txt 2>&1; then \
	  echo "make advisories: skipped, because the database cannot be had: $$(tail -n 1 target/advisories.txt)"; \
	else $(MAKE) --no-print-directory $(DENY) && \
	  PATH="$(abspath $(TOOLS)/bin):$$PATH" $(CARGO) deny --log-level error check advisories; fi

$(DENY):
	$(CARGO) install cargo-deny --version $(DENY_VERSION) --locked --debug --root $(TOOLS) --target-dir target/tools-build

# Every published crate must contain all files that it needs.
package: ## whether the crates can be packed for publishing
	$(CARGO) package --workspace --exclude lab --exclude phex-python --no-verify --allow-dirty --locked --quiet

# Uses its own target folder. If the compiler is missing, rustup gets one try of two minutes to fetch it.
MSRV_RUN = rustup run $(RUST_VERSION)
MSRV_IS_THERE = { $(MSRV_RUN) rustc --version && $(MSRV_RUN) cargo --version; } >/dev/null 2>&1
msrv: ## whether the oldest supported Rust builds the crates, if rustup has it or can fetch it
	@$(MSRV_IS_THERE) || RUSTUP_MAX_RETRIES=0 timeout 120 \
	  rustup toolchain install $(RUST_VERSION) --profile minimal --no-self-update >/dev/null 2>&1 || true
	@if $(MSRV_IS_THERE); then \
	  $(MSRV_RUN) cargo check --workspace --exclude lab --exclude phex-candle --locked --target-dir target/msrv; \
	else mkdir -p target; \
	  echo "make msrv: Rust $(RUST_VERSION) is not installed, and rustup could not fetch it" | tee -a "$(PHEX_SKIPPED)"; fi

demo: ## the demonstration on built-in data
	$(CARGO) run --release -- demo

# A benchmark: `make bench ARGS=infer`. Experiments: `cargo run --release -p lab -- experiment awa`.
bench: ## a benchmark: make bench ARGS=infer
	$(CARGO) run --release --locked -p lab -- bench $(ARGS)

# Virtual environments of the libraries that benchmarks compare with (lab/peers); they are kept between runs.
VENVS ?= .
PEERS_VENV ?= $(VENVS)/.venv-peers
PGMAX_VENV ?= $(VENVS)/.venv-pgmax
PGMPY_VENV ?= $(VENVS)/.venv-pgmpy
RECONCILE_VENV ?= $(VENVS)/.venv-reconcile

peers: $(PEERS_VENV)/stamp $(PGMAX_VENV)/stamp ## environments of the libraries that benchmarks compare with

$(PEERS_VENV)/stamp: lab/peers/requirements.txt
	python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet -r $<
	touch $@

$(PGMAX_VENV)/stamp: lab/peers/requirements-pgmax.txt
	python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --no-deps -r $<
	touch $@

$(PGMPY_VENV)/stamp: lab/python/requirements-pgmpy.txt
	python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet -r $<
	touch $@

$(RECONCILE_VENV)/stamp: lab/peers/requirements-reconcile.txt
	python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet -r $<
	touch $@

bench-reconcile: $(RECONCILE_VENV)/stamp ## reconciling beside cvxpy and scikit-learn
	$(MAKE) --no-print-directory bench ARGS="reconcile --peers-venv $(RECONCILE_VENV) $(ARGS)"

# Compares the Python package with pgmpy, PGMax and PyTorch, and a call from Python with one from Rust.
bench-python: peers $(PGMPY_VENV)/stamp $(PYTHON_STAMP) ## the Python package compared with other libraries
	VIRTUAL_ENV="$(abspath .venv-test)" $(PYTHON_BIN)/maturin develop --release --locked --quiet
	$(CARGO) build --release --locked -p lab
	$(PYTHON) lab/python/peers.py --peers-venv $(PEERS_VENV) --pgmax-venv $(PGMAX_VENV) \
	  --pgmpy-venv $(PGMPY_VENV) $(ARGS)

peers-check: peers ## whether the compared libraries give the same answers
	$(PEERS_VENV)/bin/python lab/peers/check_peers.py --venv $(PEERS_VENV) --pgmax-venv $(PGMAX_VENV)

schema: ## rewrites the JSON schema of graph files after a change of the format
	UPDATE_SCHEMA=1 $(CARGO) test -p phex-io schema

clean: ## removes all build output
	$(CARGO) clean
