# make demo   reduce a failing model, and run what it hands back        make lint    style and types
# make test   style, types and tests                                     make format  write the style
# make bench  measure the promises of speed                              make clean   remove what is generated

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq
PLUGIN := $(wildcard tests/misbehaving/pyproject.toml)

# Tests start a thousand processes of ours: none should compile what the one before it compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint format bench clean
.NOTPARALLEL:

demo: $(VENV)/.installed
	@mkdir -p demo
	@$(BIN)/python -c "import onnxbench; onnxbench.save(onnxbench.load('fixtures/demo.onnxtxt'), 'demo/model.onnx', force=True)"
	$(BIN)/onnxbench reduce demo/model.onnx --bundle demo/repro --force
	@echo
	@echo "What is left of the model, demo/repro/model.onnxtxt:"
	@echo
	@cat demo/repro/model.onnxtxt
	@echo
	@echo "Its repro.py needs no onnxbench, and exits 1 while the failure is there:"
	@echo
	@echo "$(BIN)/python demo/repro/repro.py"
	@$(BIN)/python demo/repro/repro.py; status=$$?; echo "exit $$status"; test $$status -eq 1
	@echo
	@echo "The reproducer is in demo/repro/; REPORT.md there is ready for an issue tracker."

test: lint
	$(BIN)/pytest -n 2 --dist worksteal

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check -q
	$(BIN)/ruff check -q
	$(BIN)/mypy --no-error-summary onnxbench

format: $(VENV)/.installed-dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(VENV)/.installed-dev
	$(PIP) install -e '.[bench]' -c constraints.txt
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/inspect.py
	$(BIN)/python benchmarks/extract.py

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -e . -c constraints.txt
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt $(PLUGIN) | $(BIN)/python
	$(PIP) install -e '.[dev,openvino]' -c constraints.txt
ifneq ($(PLUGIN),)
	$(PIP) install -e tests/misbehaving --no-deps
endif
	@touch $@ $(VENV)/.installed
