# Every command that people and CI run, cheapest first. `make test` is the README's test command.
CARGO ?= cargo
TOOLS := target/tools
DENY := $(TOOLS)/bin/cargo-deny
DENY_VERSION := 0.20.2
PYTHON_BIN := .venv-test/bin
PYTHON := $(PYTHON_BIN)/python
PYTHON_STAMP := .venv-test/stamp
PYTHON_NEEDS := python/tests/requirements.txt
PYTHON_CODE := conftest.py python docs lab/python examples/python

.PHONY: cuda cuda-emulated test fmt clippy doc deny unit python docs wheel demo bench bench-python peers peers-check schema clean

test: fmt clippy doc unit cuda deny python docs

fmt:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --lib --no-deps --locked

# With the real dimod and dwave-samplers on the other side; their environment is made once.
unit: $(PYTHON_STAMP)
	PHEX_PYTHON="$(abspath $(PYTHON))" $(CARGO) test --workspace --locked

$(PYTHON_STAMP): $(PYTHON_NEEDS)
	python3 -m venv .venv-test
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --requirement $(PYTHON_NEEDS)
	touch $@

# The Python package: built, linted, typed, its stubs compared with what was built, tested. For release: what it
# compiles is what `cargo run --release -- demo` needs too.
python: $(PYTHON_STAMP)
	VIRTUAL_ENV="$(abspath .venv-test)" $(PYTHON_BIN)/maturin develop --release --locked --quiet
	$(PYTHON_BIN)/ruff format --check --quiet $(PYTHON_CODE)
	$(PYTHON_BIN)/ruff check --quiet $(PYTHON_CODE)
	$(PYTHON_BIN)/mypy
	$(PYTHON) -m mypy.stubtest phex._core
	$(PYTHON) -m pytest

# The documentation site, in docs/_build/html. Needs the package built by `make python`.
docs: $(PYTHON_STAMP)
	$(PYTHON_BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

# A wheel for any Linux of this processor with Python 3.11 or newer, in dist/.
wheel: $(PYTHON_STAMP)
	$(PYTHON_BIN)/maturin build --release --locked --out dist

# The CUDA kernels on the processor, by an emulated driver: answers and faults, not speed; and whether NVRTC takes them, if
# PyTorch has brought it. Needs a C++ compiler.
EMULATED := LD_LIBRARY_PATH="$(abspath target/emulator)" PHEX_CUDA_CACHE="$(abspath target/emulator/kernels)" \
  EMULATOR_NVRTC="$$(ls $(abspath .venv-test)/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.?? 2>/dev/null | head -n 1)"
cuda-emulated:
	crates/phex-cuda/emulator/build.sh target/emulator
	$(EMULATED) $(CARGO) test --locked -p phex-cuda --test memory
	$(EMULATED) EMULATOR_MEMORY=8000000000 $(CARGO) test --locked -p phex-cuda --test behaviour
	$(EMULATED) EMULATOR_MEMORY=8000000000 $(CARGO) test --locked -p phex-cli --test behaviour device::

# The quick ones of them.
cuda: $(PYTHON_STAMP)
	@if command -v $${CXX:-g++} >/dev/null; then \
	  crates/phex-cuda/emulator/build.sh target/emulator && \
	  $(EMULATED) EMULATOR_MEMORY=8000000000 $(CARGO) test --workspace --locked --test behaviour -- few_strengths ordinary_rows extreme_rows; \
	else echo "skipped: the CUDA kernels on an emulated driver, for there is no C++ compiler"; fi

# Licences, sources and bans; installs the tool once, into target/.
deny: $(DENY)
	PATH="$(abspath $(TOOLS)/bin):$$PATH" $(CARGO) deny --log-level error check bans licenses sources

$(DENY):
	$(CARGO) install cargo-deny --version $(DENY_VERSION) --locked --debug --root $(TOOLS) --target-dir target/tools-build

demo:
	$(CARGO) run --release -- demo

# A benchmark: `make bench ARGS=infer`. Experiments: `cargo run --release -p lab -- experiment awa`.
bench:
	$(CARGO) run --release --locked -p lab -- bench $(ARGS)

# Peers of the benchmarks (lab/peers): two virtual environments, kept between runs.
VENVS ?= .
PEERS_VENV ?= $(VENVS)/.venv-peers
PGMAX_VENV ?= $(VENVS)/.venv-pgmax
PGMPY_VENV ?= $(VENVS)/.venv-pgmpy

peers: $(PEERS_VENV)/stamp $(PGMAX_VENV)/stamp

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

# The Python package beside pgmpy, PGMax and PyTorch, and what a call costs more than from Rust.
bench-python: peers $(PGMPY_VENV)/stamp $(PYTHON_STAMP)
	VIRTUAL_ENV="$(abspath .venv-test)" $(PYTHON_BIN)/maturin develop --release --locked --quiet
	$(CARGO) build --release --locked -p lab
	$(PYTHON) lab/python/peers.py --peers-venv $(PEERS_VENV) --pgmax-venv $(PGMAX_VENV) \
	  --pgmpy-venv $(PGMPY_VENV) $(ARGS)

peers-check: peers
	$(PEERS_VENV)/bin/python lab/peers/check_peers.py --venv $(PEERS_VENV) --pgmax-venv $(PGMAX_VENV)

# Rewrites the JSON schema of graph files after a change of their form.
schema:
	UPDATE_SCHEMA=1 $(CARGO) test -p phex-io schema

clean:
	$(CARGO) clean
