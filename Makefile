# make demo, make test: install what is missing, then run. Everything lives in .venv.
PYTHON ?= python3
VENV ?= .venv
# Processes of the tests, three on two cores: many wait for a browser or another process.
WORKERS ?= 3
RUN := $(VENV)/bin/python

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all test-long coverage campaign killpoints fuzz mutants lint format train prepare export eval zoo benchmark results lens page element docs clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(VENV)/.installed  ## set up .venv with everything

$(VENV)/.installed: pyproject.toml
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev,video,lens,shards]'
	@touch $@

# What only the tests of other formats and of the page need.
$(VENV)/.everything: $(VENV)/.installed
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[coreml,diffusion,executorch,mlflow,ncnn,tflite,browser,hub,mutants,ray,scale,search,serving,slurm,stores,wandb,docs]'
	@touch $@

demo: install  ## nine photographs, the built-in cartoon teacher, a trained student: a few minutes
	$(RUN) -m distill.prepare data=demo
	$(RUN) -m distill.train data=demo trainer=demo encoder.weights=none run=demo
	$(RUN) -m distill.export run=demo
	$(RUN) -m distill.eval_fid run=demo features=none
	@echo
	@echo "student        runs/demo/export/student.onnx"
	@echo "report         runs/demo/export/report.json"
	@echo "contact sheet  runs/demo/eval/contact_sheet.png"
	@echo "on the camera  make lens ARGS=run=demo"

test: $(VENV)/.everything  ## the fast tests, a few minutes
	$(RUN) -m pytest -n $(WORKERS) -m "not slow and not campaign"

test-all: $(VENV)/.everything  ## and the slow ones, as CI does: a quarter of an hour
	$(RUN) -m pytest -n $(WORKERS) -m "not campaign"

test-long: $(VENV)/.everything  ## the tests that CI leaves out
	$(RUN) -m pytest -n $(WORKERS) -m campaign

coverage: $(VENV)/.everything  ## the share of src/ that CI's tests run, without what processes of their own run
	$(RUN) -m pytest -n $(WORKERS) -m "not campaign" --cov=src --cov-report=term:skip-covered

campaign: coverage test-long killpoints fuzz mutants  ## hours: what a scheduled workflow runs every week

killpoints: install  ## kill every command at random moments; ARGS="--commands lens --kills 50"
	$(RUN) campaigns/kill_points.py $(ARGS)

fuzz: install  ## thousands of damaged inputs for every reader; ARGS="--readers onnx --cases 500"
	$(RUN) campaigns/fuzz.py $(ARGS)

mutants: $(VENV)/.everything  ## change the code a little, see whether a test notices; ARGS="--parts losses --mutants 50"
	$(RUN) campaigns/mutants.py $(ARGS)

results: install  ## a table of docs/results.md; TABLE=curation ARGS="DIR=photos"; without TABLE: which there are
	$(RUN) benchmarks/results.py $(TABLE) $(ARGS)

lint: install  ## ruff, mypy and the pre-commit hooks
	$(VENV)/bin/pre-commit run --all-files

format: install  ## rewrite in the project's format
	$(VENV)/bin/ruff check --fix-only --quiet
	$(VENV)/bin/ruff format --quiet

train: install  ## distill.train; ARGS="style=hayao photos=DIR"
	$(RUN) -m distill.train $(ARGS)

prepare: install  ## distill.prepare; ARGS="style=hayao photos=DIR"
	$(RUN) -m distill.prepare $(ARGS)

export: install  ## distill.export on the latest run; ARGS="run=NAME"
	$(RUN) -m distill.export $(ARGS)

eval: install  ## distill.eval_fid on the latest run; ARGS="features=mobilenet"
	$(RUN) -m distill.eval_fid $(ARGS)

benchmark: install  ## teacher, student and other ONNX files timed here; ARGS="FILE.onnx style=hayao"
	$(RUN) -m distill.benchmark $(ARGS)

zoo: install  ## the students that come with the package; PHOTOS=DIR,DIR STYLES="hayao toon" ARGS="--steps 0.01"
	$(RUN) tools/zoo.py $(STYLES) --photos $(PHOTOS) $(ARGS)

lens: install  ## students live on the camera, in the browser; ARGS="students=[hayao] https=true"
	$(RUN) -m distill.lens $(ARGS)

page: install  ## build that page, for a wheel to carry (needs npm)
	$(RUN) -c "from distill_lens import webpage; print(webpage.find())"

element:  ## the npm package of <distill-lens>, in dist/distill-lens (needs npm)
	cd web && npm ci --no-audit --no-fund --ignore-scripts && npm run build:element
	cd dist/distill-lens && npm pack --dry-run

docs: $(VENV)/.everything  ## the documentation as a site, in dist/docs
	$(RUN) tools/docs_site.py

clean:  ## remove .venv (runs and data stay)
	rm -rf $(VENV)
