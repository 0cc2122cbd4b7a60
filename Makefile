# Every command that people and CI run, cheapest first. `make test` is the README's test command.
CARGO ?= cargo
TOOLS := target/tools
DENY := $(TOOLS)/bin/cargo-deny
DENY_VERSION := 0.20.2
PYTHON := .venv-test/bin/python
PYTHON_STAMP := .venv-test/stamp
PYTHON_NEEDS := crates/phex-io/tests/python/requirements.txt

.PHONY: test fmt clippy doc deny unit demo bench peers peers-check schema clean

test: fmt clippy doc unit deny

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

# Licences, sources and bans; installs the tool once, into target/.
deny: $(DENY)
	PATH="$(abspath $(TOOLS)/bin):$$PATH" $(CARGO) deny --log-level error check bans licenses sources

$(DENY):
	$(CARGO) install cargo-deny --version $(DENY_VERSION) --locked --root $(TOOLS) --target-dir target/tools-build

demo:
	$(CARGO) run --release -- demo

bench:
	$(CARGO) run --release --locked -p phex-bench -- $(ARGS)

# Peers of the benchmarks (bench/peers): two virtual environments, kept between runs.
VENVS ?= .
PEERS_VENV ?= $(VENVS)/.venv-peers
PGMAX_VENV ?= $(VENVS)/.venv-pgmax

peers: $(PEERS_VENV)/stamp $(PGMAX_VENV)/stamp

$(PEERS_VENV)/stamp: bench/peers/requirements.txt
	python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet -r $<
	touch $@

$(PGMAX_VENV)/stamp: bench/peers/requirements-pgmax.txt
	python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --no-deps -r $<
	touch $@

peers-check: peers
	$(PEERS_VENV)/bin/python bench/peers/check_peers.py --venv $(PEERS_VENV) --pgmax-venv $(PGMAX_VENV)

# Rewrites the JSON schema of graph files after a change of their form.
schema:
	UPDATE_SCHEMA=1 $(CARGO) test -p phex-io schema

clean:
	$(CARGO) clean
