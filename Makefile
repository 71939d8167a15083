# `make demo` and `make test` do everything, set-up included. Another interpreter:
# `PYTHON=python3.12 make test` (which replaces a .venv of another Python version).

VENV := .venv
STAMP := $(VENV)/set-up-complete
BENCHMARKS := startup cache_stores neighbours srl_encoder encoders latency memory pretrain embed score \
	probes tasks
# What hides AllenNLP and what Windows and macOS lack from the tests of the core, and the tests.
HIDING := -p tests.core_only -p tests.other_platform -m "not posix"
CORE_TESTS := tests/bilm tests/corpora tests/elmo tests/util tests/test_environment.py \
	tests/test_platforms.py tests/analysis/test_context_index.py tests/analysis/test_surprisal.py

.DEFAULT_GOAL := help
.PHONY: help demo test test-core bench setup lint format docs

help:
	@echo "make demo    train, evaluate and predict on what ships with the project (minutes)"
	@echo "make test    run the tests"
	@echo "make test-core    run those of ELMo alone, as without AllenNLP on Windows"
	@echo "make bench   measure speed, about 30 minutes on two quiet cores; needs ELMO_DATA"
	@echo "make lint    check style and types         make format  format the code"
	@echo "make docs    write the guide as a website into site/"
	@echo "make setup   only what the others do first: install into $(VENV)"
	@echo "PYTHON=python3.12 make test                 choose the interpreter (3.11 to 3.14)"

demo: $(STAMP)
	@VENV=$(VENV) scripts/demo.sh

test: $(STAMP)
	$(VENV)/bin/python -m pytest tests -q -n 4 --dist loadfile

test-core: $(STAMP)
	$(VENV)/bin/python -m pytest $(HIDING) $(CORE_TESTS) -q -n 2 --dist loadfile

# If the data of a benchmark is missing, the others still run.
bench: $(STAMP)
	@echo "Takes about 30 minutes and a machine that does nothing else; see benchmarks/README.md."
	@failed=0; for name in $(BENCHMARKS); do echo; echo "$$name"; $(VENV)/bin/python \
		benchmarks/$$name.py --output benchmarks/results.json || failed=1; done; \
		$(VENV)/bin/python benchmarks/table.py && exit $$failed

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build
	@echo "Open site/index.html."

setup: $(STAMP)

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy elmo_plugin

format: $(STAMP)
	$(VENV)/bin/ruff check --fix-only --quiet .
	$(VENV)/bin/ruff format .

# Sets up again if PYTHON names an interpreter of another version than that of .venv.
ifdef PYTHON
ifneq ($(shell { $(PYTHON) -V; } 2>/dev/null),$(shell { $(VENV)/bin/python -V; } 2>/dev/null))
.PHONY: $(STAMP)
endif
endif

# If set-up is interrupted, the stamp is missing and the next call continues.
$(STAMP): pyproject.toml constraints.txt
	@VENV=$(VENV) PYTHON=$(PYTHON) scripts/setup.sh
	@touch $@
