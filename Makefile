# Everything a person needs: `make` alone lists it. Works from a fresh clone with Python 3.11 to 3.13 and make only.
# The virtual environment in .venv is made on first use and again whenever the lock file's content changes.

SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
export PYTHON ?=
.DEFAULT_GOAL := help
.PHONY: help run demo chaos bench races test test-fast check lock clean venv venv-dev

PY := .venv/bin/python
# A file's tests stay together, in the order that tests/conftest.py gives; each process has servers of its own, and
# there are two more than the cores of a small machine, since half of a test is waiting for something.
SIDE_BY_SIDE := -n 4 --dist loadfile --no-loadscope-reorder
# What settings need when nothing is running: no check opens a connection.
OFFLINE := DEBUG=1 DATABASE_URL=postgresql:///offline

help: ## list what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

run: venv ## start everything on this machine; PORT=8000, AGENTOPS_DATA=.data; Ctrl-C stops it
	@exec $(PY) -m agentops.local run

demo: venv ## play the reference case with billing's answer lost; TICKET=case.json plays another
	@exec $(PY) -m agentops.demo $(if $(TICKET),"$(TICKET)")

chaos: venv ## three minutes of faults, kills and freezes, judged; CHAOS_MINUTES=30, CHAOS_SEED= replays
	@exec $(PY) -m agentops.chaos

test: venv-dev ## run every test
	@exec $(PY) -m pytest $(SIDE_BY_SIDE)

test-fast: venv-dev ## run the tests that need no browser, no whole page and no process of their own
	@exec $(PY) -m pytest $(SIDE_BY_SIDE) -m "not browser and not stack"

races: venv-dev ## every race over one request, between people and with workers, a thousand rounds each
	@RACE_ROUNDS=1000 exec $(PY) -m pytest tests/approvals/test_races.py tests/engine/test_votes_against_workers.py \
		tests/engine/test_one_total.py

bench: venv ## measure runs beside raw commits, lists, statements; PART=inbox or statements alone, BENCH_RUNS, BENCH_LINES
	@exec $(PY) -m agentops.bench $(PART)

check: venv-dev ## style, types, layers, sizes, migrations, locks
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(OFFLINE) $(PY) -m mypy .
	$(PY) -c "import importlinter.cli as c; c.lint_imports_command()" --no-cache
	$(PY) -m pytest -q tests/architecture
	$(OFFLINE) $(PY) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	@! grep -n '://' requirements.lock requirements-dev.lock || { echo "a lock file names an address" >&2; exit 1; }

lock: venv-dev ## work the lock files out again from requirements*.in
	$(PY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		requirements.in -o requirements.lock
	$(PY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--constraint requirements.lock requirements-dev.in -o requirements-dev.lock

clean: ## remove the environment and every cache; the data folder stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache screenshots
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv:
	@./.ci/venv requirements.lock

venv-dev:
	@./.ci/venv requirements-dev.lock
