# What there is to do here. `make` alone lists it.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help up test demo bench chaos lint lock

PORT ?= 8000
ARGS ?=
export PORT

RUN := .venv/bin/python
PATH := $(CURDIR)/.venv/bin:$(PATH)
export PATH

# The type checker reads the settings; it connects to nothing.
SETTINGS := DEBUG=1 ALLOWED_HOSTS=localhost SECRET_KEY=lint SIGNOFF_ENCRYPTION_KEYS=lint \
	DATABASE_URL=postgresql://lint@localhost/lint REDIS_URL=redis://localhost

# The first Python that runs and is new enough makes the virtual environment.
bootstrap = @for python in python3.13 python3.12 python3.14 python3; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; then \
	exec $$python config/bootstrap.py $(1); fi; done; \
	echo "No Python 3.12 or newer was found: install one (python3.13 is a good choice) and run make again." >&2; exit 1

help: ## list what make can do
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## start all of Signoff on this machine (PORT=8000); Ctrl-C ends it
	$(call bootstrap,requirements.txt)
	@exec $(RUN) -m config.up

test: ## run all tests, the browser's too (ARGS="tests/effects -k name")
	$(call bootstrap,requirements-dev.txt)
	@exec $(RUN) -m pytest --numprocesses auto --dist worksteal $(ARGS)

demo: ## tell the story without a browser: a real crash, then the tally
	$(call bootstrap,requirements.txt)
	@exec $(RUN) -m config.demo $(ARGS)

bench: ## measure Signoff beside its peers; or ARGS=--giant, 100,000 rows; or ARGS=--lists, a large ledger
	$(call bootstrap,requirements-bench.txt)
	@exec $(RUN) -m tests.bench $(ARGS)

chaos: ## break everything by a seed, then check (ARGS="--seed 7 --minutes 3", or ARGS=--defects)
	$(call bootstrap,requirements-dev.txt)
	@exec $(RUN) -m tests.chaos $(ARGS)

lint: ## check style, types, who imports whom, and templates
	$(call bootstrap,requirements-dev.txt)
	@ruff check .
	@ruff format --check .
	@$(SETTINGS) mypy .
	@lint-imports
	@find . -name '*.html' -path '*/templates/*' ! -path './.*' -exec djade --check {} +

lock: ## make the lock files again from requirements*.in
	$(call bootstrap,requirements-dev.txt)
	@for name in requirements requirements-dev requirements-bench; do \
	uv pip compile --quiet --generate-hashes --universal --python-version 3.12 --no-header --no-annotate \
	$(ARGS) $$name.in --output-file $$name.txt || exit 1; done
