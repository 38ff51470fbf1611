# One product, two commands: `make run` and `make test`. `make help` lists the rest.
#
# PORT HOST DATA_DIR DATABASE_URL REDIS_URL BASE_URL LICENSE_SESSIONS (and every other setting of docs/reference/settings.md)
# may be given in the environment or here: `make run PORT=9000`. Make hands both on to what it starts, so nothing below
# repeats them.

.DEFAULT_GOAL := help
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
PYTHON := $(BIN)/python
MANAGE := $(PYTHON) manage.py

# The interpreter that makes the virtual environment: the first that is new enough. Override with `make setup BASE_PYTHON=…`.
BASE_PYTHON ?= $(shell for candidate in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$candidate"; break; }; done)

# Stamps say what is installed; a later run compares two file times and is done. A stamp holds nothing: its time counts.
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
PIP := $(PYTHON) -m pip --disable-pip-version-check --quiet

# Test processes: two for each core, since half of the tests wait for instances and browsers. ARGS goes to pytest (test, acceptance, fuzz), story or bench: `make test ARGS="-k licence"`.
TEST_PROCESSES ?= $(shell echo $$(( 2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) )))
ARGS ?=

# Client libraries in other languages that tests drive; without npm those tests skip (with CI=true they fail).
CLIENTS := $(patsubst %/package-lock.json,%/node_modules/.installed,$(wildcard tests/clients/*/package-lock.json))

.PHONY: help setup run test acceptance compatibility story lint types bench fuzz docs pictures client clients assets requirements audit

help: ## What there is to do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  Settings by variable: make run PORT=9000 LICENSE_SESSIONS=5   (docs/reference/settings.md lists all)"

setup: $(INSTALLED) ## Create .venv, install what the product needs, generate keys
	@$(MANAGE) serve --keys-only

run: $(INSTALLED) ## The whole instance with demo data: web server and worker; Ctrl-C stops it
	@DEMO=$${DEMO:-1} exec $(MANAGE) serve $(ARGS)

test: setup $(INSTALLED_DEV) clients ## The whole test suite
	@$(PYTHON) -m pytest -n $(TEST_PROCESSES) --dist loadgroup --no-loadscope-reorder $(ARGS)

acceptance: setup $(INSTALLED_DEV) ## The statements of tests/acceptance and whether each holds
	@$(PYTHON) -m pytest tests/acceptance --checklist --quiet $(ARGS)

compatibility: setup $(INSTALLED_DEV) clients ## Clients and documents of the reference; writes docs/reference/compatibility.md
	@$(PYTHON) -m pytest tests/compatibility --compatibility-table --quiet $(ARGS)

# A shell has LANG, too: only what stands on the command line counts.
CLIENT_LANGUAGE = $(if $(filter command line,$(origin LANG)),$(LANG),)
OUT ?= build/platform_client
ODATA2TS := node $(CURDIR)/tests/clients/odata/node_modules/@odata2ts/odata2ts/lib/run-cli.js

client: setup ## A typed client of the instance in OUT: LANG=python or LANG=typescript (needs npm)
	@$(if $(filter python typescript,$(CLIENT_LANGUAGE)),,$(error usage: make client LANG=python|typescript [OUT=directory]))
	@LANG=C.UTF-8 $(MANAGE) generate_client $(CLIENT_LANGUAGE) $(OUT)
ifeq ($(LANG),typescript)
	@$(MAKE) --no-print-directory clients LANG=C.UTF-8
	@cd $(OUT) && $(ODATA2TS) -s metadata.xml -o src -name platform -e ts
endif

clients: $(CLIENTS) ## Client libraries of other languages for the tests, where npm is installed

%/node_modules/.installed: %/package-lock.json
	@if command -v npm >/dev/null; then echo "Installing the clients in $* ..." && \
		cd $* && npm ci --ignore-scripts --no-audit --no-fund --silent && touch node_modules/.installed; fi

story: setup ## The main story, step by step, against BASE_URL or an instance of its own
	@$(PYTHON) -m tests.story $(ARGS)

lint: $(INSTALLED_DEV) ## ruff, and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports --no-cache

types: $(INSTALLED_DEV) ## mypy --strict
	@$(BIN)/mypy

bench: setup ## Requests per second against a floor measured in the same run
	@$(PYTHON) -m bench $(ARGS)

fuzz: $(INSTALLED_DEV) ## Random input against every parser and the API
	@$(PYTHON) -m pytest -n $(TEST_PROCESSES) -m "fuzz or hypothesis" --hypothesis-profile=fuzz $(ARGS)

docs: setup $(INSTALLED_DEV) ## The documentation as a site in ./site; warnings are errors
	@$(MANAGE) generate_docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

pictures: setup $(INSTALLED_DEV) ## The pictures of the documentation anew; ARGS=DIRECTORY leaves every page there
	@$(PYTHON) -m tests.pages.pictures $(ARGS)

# Pages load what is committed; who runs the platform needs no Node.
assets: ## The bundles of other people's scripts anew, from the lock file of platform_site/shell (needs npm)
	@cd platform_site/shell && npm ci --ignore-scripts --no-audit --no-fund --silent && npm run --silent build

# Pins that still fit stay as they are: `make requirements ARGS=--upgrade`, or ARGS="--upgrade-package NAME", moves them.
# One resolution for every system and Python from the lowest on; neither addresses nor paths of this machine.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-config --no-emit-index-url --no-emit-find-links --no-header

requirements: $(INSTALLED_DEV) ## requirements*.txt anew from requirements*.in: every pin, with hashes
	@$(COMPILE) $(ARGS) requirements.in --output-file requirements.txt
	@$(COMPILE) $(ARGS) requirements-dev.in --output-file requirements-dev.txt

audit: $(INSTALLED_DEV) ## Known vulnerabilities of the pinned packages, where PyPI's advisories can be reached
	@$(PYTHON) .ci/audit.py

$(PYTHON):
	@test -n "$(BASE_PYTHON)" || { echo "Python 3.11 or newer is needed and none is on the PATH." >&2; exit 1; }
	@$(BASE_PYTHON) -m venv $(VENV) || { \
		echo "The virtual environment could not be made; on Debian and Ubuntu: apt-get install python3-venv." >&2; exit 1; }

$(INSTALLED): requirements.txt | $(PYTHON)
	@echo "Installing what the platform needs into $(VENV) ..."
	@$(PIP) install --require-hashes -r requirements.txt
	@touch $@

$(INSTALLED_DEV): requirements-dev.txt $(INSTALLED)
	@echo "Installing what tests, lint, types and docs need into $(VENV) ..."
	@$(PIP) install --require-hashes -r requirements-dev.txt
	@touch $@
