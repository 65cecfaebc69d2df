# One place for every command. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup demo lint format test test-unit test-git test-sim test-runner test-api test-runs scenarios test-cluster test-pods test-real guards crash-matrix crash-pairs bench binaries images cluster coverage generate

UV_VERSION := 0.13.9
BOOT := .boot
UV := $(BOOT)/bin/uv
PY := .venv/bin/python
TESTS := TMPDIR=$$(hack/scratch) $(PY) -m pytest -q

# Who forbids bytecode lets each of some thousand processes compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(UV):
	python3 -m venv $(BOOT)
	$(BOOT)/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

setup: $(UV) ## create .venv with the workspace and the tools, as locked
	$(UV) sync --frozen --quiet

lint: setup ## ruff, mypy --strict, import contracts, tidy
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	$(PY) -m pytest -q tests/tidy

format: setup ## format and fix what a machine can fix
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

test-unit: setup ## microseconds to seconds, no cluster
	$(TESTS) tests/unit

test-git: setup ## real git, against real smart HTTP and a forge of the tests
	$(TESTS) -n 2 tests/git tests/contract

binaries: ## build Kubernetes and its like, once (docs/cluster.md)
	hack/cluster binaries

images: binaries ## build the images of operator, runner and test servers
	hack/images build operator runner fixtures operator-test runner-test --extra hack/fault

demo: setup binaries ## watch one upgrade of a real library, from kubectl apply to the pull request
	$(PY) hack/demo

cluster: binaries ## start or repair the whole cluster
	hack/cluster up

test-api: setup binaries ## against a real API server
	$(TESTS) tests/api

test-sim: setup binaries ## the product in one process on virtual time, struck at each point; its doubles against the originals
	$(TESTS) -n 2 tests/sim

test-runner: setup ## runner processes and their kills; the Python ecosystem with real uv and pytest
	$(TESTS) -n 2 --timeout 600 tests/runner tests/toolchain

test-runs: setup binaries ## the scenario table through operator, runner, git and uv; other whole runs
	$(TESTS) -n 2 --timeout 600 -m 'not repeated' tests/runs

scenarios: setup binaries ## every cell of the scenario table, then the matrix: expected, and seen
	-$(TESTS) -n 2 --timeout 600 tests/runs/test_scenarios.py
	$(PY) hack/scenarios.py

test-cluster: setup images cluster ## against the whole cluster
	$(PY) -m pytest -q tests/cluster

test-pods: setup images cluster ## more whole runs in pods, a second Python, thirty kills at random (docs/reliability.md)
	hack/images build runner-trixie
	$(PY) -m pytest -q -o log_cli=true -o log_cli_level=WARNING tests/pods

test-real: setup ## the corpus, against the real package registry
	$(PY) -m pytest -q tests/real

guards: setup binaries ## take each guard out of a copy of the source; a named test must notice (docs/reliability.md)
	TMPDIR=$$(hack/scratch) $(PY) hack/guards

crash-matrix: setup binaries ## strike at every fault point of all programs; prints what came of each (docs/recovery.md)
	TMPDIR=$$(hack/scratch) $(PY) hack/crash-matrix

crash-pairs: setup ## strike at every ordered pair of points in the simulated world: more than an hour (docs/recovery.md)
	TMPDIR=$$(hack/scratch) $(PY) hack/crash-pairs

bench: setup binaries ## speed beside bare programs in the same run; a missed bound is told (docs/benchmarks.md)
	-$(PY) hack/bench/append.py
	-$(PY) hack/bench/writes.py
	-$(PY) hack/bench/replay.py
	-$(PY) hack/bench/latency.py
	-$(PY) hack/bench/failover.py
	-$(PY) hack/bench/memory.py
	-$(PY) hack/bench/scale.py

coverage: setup ## unit tests with branch coverage of the pure parts: 100 % or fail
	TMPDIR=$$(hack/scratch) $(PY) -m coverage run -m pytest -q tests/unit
	$(PY) -m coverage report --fail-under=100 --skip-covered --show-missing

generate: setup binaries ## CRDs, generated docs, golden files of the chart, the kustomize base
	$(PY) hack/generate.py

# Runs in pods wait for most of their time, those in processes compute; the rest fills the gaps.
test: setup binaries ## everything that CI runs, in three lanes
	hack/lanes 'pods: images cluster test-cluster test-api' 'processes: test-runs test-runner' 'rest: lint coverage test-git test-sim'

