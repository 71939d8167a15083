# `make demo` and `make test` do everything, set-up included. Another interpreter:
# `PYTHON=python3.12 make test` (a .venv of another Python version is then made anew).

VENV := .venv
STAMP := $(VENV)/set-up-complete
RUFF_VERSION := 0.17.5
BENCHMARKS := startup cache_stores srl_encoder latency memory pretrain embed tasks

.DEFAULT_GOAL := help
.PHONY: help demo test bench setup lint format

help:
	@echo "make demo    train, evaluate and predict on what ships with the project (minutes)"
	@echo "make test    run the tests"
	@echo "make bench   measure speed, about 30 minutes on two quiet cores; needs ELMO_DATA"
	@echo "make lint    check layout and style        make format  lay the code out"
	@echo "make setup   only what the others do first: install into $(VENV)"
	@echo "PYTHON=python3.12 make test                 choose the interpreter (3.11 to 3.13)"

demo: $(STAMP)
	@VENV=$(VENV) scripts/demo.sh

test: $(STAMP)
	$(VENV)/bin/python -m pytest tests -q

# One that lacks its data says so, and the others go on.
bench: $(STAMP)
	@echo "Takes about 30 minutes and a machine that does nothing else; see benchmarks/README.md."
	@failed=0; for name in $(BENCHMARKS); do echo; echo "$$name"; $(VENV)/bin/python \
		benchmarks/$$name.py --output benchmarks/results.json || failed=1; done; \
		$(VENV)/bin/python benchmarks/table.py && exit $$failed

setup: $(STAMP)

lint: $(VENV)/bin/ruff
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

format: $(VENV)/bin/ruff
	$(VENV)/bin/ruff check --fix-only --quiet .
	$(VENV)/bin/ruff format .

# When an interpreter is asked for and .venv holds another one, the stamp no longer counts.
ifdef PYTHON
ifneq ($(shell { $(PYTHON) -V; } 2>/dev/null),$(shell { $(VENV)/bin/python -V; } 2>/dev/null))
.PHONY: $(STAMP)
endif
endif

# Interrupted, the stamp is missing and the next call goes on where this one stopped.
$(STAMP): requirements.txt constraints.txt setup.py
	@VENV=$(VENV) PYTHON=$(PYTHON) scripts/setup.sh
	@touch $@

$(VENV)/bin/ruff: $(STAMP)
	@test -x $@ || $(VENV)/bin/python -m pip install -qq ruff==$(RUFF_VERSION)
	@touch $@
