PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 3
export OPENBLAS_NUM_THREADS ?= 1
export PRIORSHIFT_DATABASE_URL ?= sqlite:///var/priorshift.db

.PHONY: demo run test lint format audit audit-online bench fuzz-api fuzz-bodies fuzz-likelihood simulate-alerts soak screenshots clean

demo: $(VENV)/installed
	$(BIN)/priorshift demo

run: $(VENV)/installed
	$(BIN)/priorshift demo --keep-running --port 8000

test: $(VENV)/installed
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile

format: $(VENV)/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

audit: $(VENV)/installed
	$(BIN)/python -m benchmarks.audit

audit-online:
	$(PYTHON) -m venv var/audit
	var/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1
	var/audit/bin/pip-audit --strict --disable-pip --no-deps --requirement requirements-dev.lock

$(VENV)/installed: requirements.lock requirements-dev.lock pyproject.toml clients/python/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e clients/python
	touch $@

bench: $(VENV)/installed
	$(BIN)/python -m benchmarks.random_features

fuzz-api: $(VENV)/installed
	$(BIN)/python -m benchmarks.fuzz_api

fuzz-bodies: $(VENV)/installed
	$(BIN)/python -m benchmarks.fuzz_bodies --inputs 100000

fuzz-likelihood: $(VENV)/installed
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.fuzz_likelihood --problems 40000
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.fuzz_likelihood --full-size

simulate-alerts: $(VENV)/installed
	$(BIN)/python -m benchmarks.alerts

soak: $(VENV)/installed
	$(BIN)/python -m benchmarks.soak

screenshots: $(VENV)/installed
	$(BIN)/python -m benchmarks.screenshots

clean:
	rm -rf $(VENV) var
