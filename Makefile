# Every target creates what it needs (.venv, missing Debian packages) and prints what it does. `make` alone lists them.

VENV    ?= .venv
PORT    ?= 8888
DOCKER  ?= docker
# Where `make look` leaves its pictures; outside this folder, so that none is ever committed.
LOOK    ?= $(or $(TMPDIR),/tmp)/fusion-course-look
# One process more than there are cores, because tests of the grader wait for workers much of their time.
TEST_PROCESSES ?= $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)

.DEFAULT_GOAL := help
SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c

PYTHON := $(VENV)/bin/python
READY  := $(VENV)/.installed
READY_TO_TEST := $(VENV)/.installed-test

# nbgrader looks for alembic on PATH; without it the first gradebook stays half made.
export PATH := $(abspath $(VENV))/bin:$(PATH)
# Two threads on a shared machine make everything here slower; nothing here needs the network once installed.
export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE  ?= 1

# Everything after ## in this file is the help text.
.PHONY: help
help:  ## list the targets (this text)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

$(READY): pyproject.toml constraints.txt
	@scripts/install.sh "$(VENV)"

# Dask grades a class on a cluster; mypy reads the code that uses it.
# slapo, with which schedules are compared, lies beside the environment: its wheel brings a package `tests`.
$(READY_TO_TEST): pyproject.toml constraints.txt
	@scripts/install.sh "$(VENV)" cluster
	@[ -d work/slapo/slapo-0.0.3.dist-info ] || \
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --target work/slapo slapo==0.0.3
	@touch "$@"

# The fused operators' C++ bodies for this processor. Without a compiler they run as separate PyTorch operators.
BODIES := $(VENV)/.bodies
$(BODIES): $(READY) $(wildcard course_lib/kernels/cpu/*.cpp course_lib/kernels/cpu/*.h course_lib/kernels/cpu/*.py) | system-packages
	@echo "==> Compiling the fused operators for this processor (half a minute, once)"
	@$(PYTHON) -m course_lib.kernels.cpu.build && touch "$@" || echo "Going on without them."

.PHONY: system-packages
system-packages:
	@scripts/system_packages.sh dot=graphviz g++=g++ bwrap=bubblewrap

.PHONY: demo
demo: system-packages $(READY) $(BODIES)  ## an instructor's whole grading cycle on a small class: release, grade, feedback, report
	@$(PYTHON) -m demo

.PHONY: test
test: lint  ## lint, types and all tests (those for a GPU excepted)
	@# here and not by $(BODIES), which needs only what `make demo` installs
	@$(PYTHON) -m course_lib.kernels.cpu.build
	@echo "==> Tests"
	@# worksteal: neighbours stay together, so that what a file sets up once is set up once
	@# disable-warnings: hundreds of lines of other packages would stand between a failure and the last line
	@# without bytecode, each of hundreds of processes would compile the same modules
	@env -u PYTHONDONTWRITEBYTECODE $(PYTHON) -m pytest -n $(TEST_PROCESSES) --dist worksteal -m "not gpu" --disable-warnings

.PHONY: lab
lab: release  ## open the released notebooks in JupyterLab, as a student sees them
	@PORT="$(PORT)" scripts/lab.sh

.PHONY: release
release: system-packages $(READY) $(BODIES)  ## build the students' notebooks, without solutions, into work/release
	@echo "==> Releasing notebooks/ to work/release"
	@$(PYTHON) -m autograder release

.PHONY: grade
grade: system-packages $(READY) $(BODIES)  ## grade every collected submission in work/submitted
	@echo "==> Grading work/submitted"
	@$(PYTHON) -m autograder batch

.PHONY: bench
bench: $(READY) $(BODIES)  ## long measurements on the CPU, kept in benchmarks/results; needs Chromium (apt-get install chromium)
	@echo "==> What each pass saves, and what the passes take"
	@$(PYTHON) -m benchmarks.record fusion_passes
	@echo "==> Passes on generated programs"
	@$(PYTHON) -m benchmarks.record fusion_sweep
	@echo "==> Passes on generated programs with effects"
	@$(PYTHON) -m benchmarks.record effects_sweep
	@echo "==> fuse and Inductor on hard programs"
	@$(PYTHON) -m benchmarks.record inductor_comparison
	@echo "==> CPU seconds of fuse, by nodes"
	@$(PYTHON) -m benchmarks.record fusion_speed
	@echo "==> Capture modes"
	@$(PYTHON) -m benchmarks.record capture_comparison
	@echo "==> What a backend for the toy machine saves"
	@$(PYTHON) -m benchmarks.record backend_launches
	@echo "==> Fused operators on this CPU, beside eager and torch.compile"
	@$(PYTHON) -m benchmarks.record cpu_kernels || echo "A target is missed; going on."
	@echo "==> Verdicts on speed where the true ratio is known"
	@$(PYTHON) -m benchmarks.record timing_decisions
	@echo "==> The judge's verdicts on speed, with real workers: idle, then beside other processes"
	@$(PYTHON) -m benchmarks.record speed_verdicts --part idle --only idle || echo "A target is missed; going on."
	@$(PYTHON) -m benchmarks.record speed_verdicts --part loaded --only loaded || echo "A target is missed; going on."
	@echo "==> What isolation costs, by level"
	@$(PYTHON) -m benchmarks.record sandbox_overhead
	@echo "==> Grading a class of 300"
	@$(PYTHON) -m benchmarks.record batch_throughput
	@echo "==> Grading that is killed 20 times"
	@$(PYTHON) -m benchmarks.record batch_kills
	@echo "==> 300 odd notebooks, folders and names, with ten good hand-ins among them, graded twice"
	@$(PYTHON) -m benchmarks.record hostile_class
	@echo "==> Right answers beside one that takes all processors"
	@$(PYTHON) -m benchmarks.record busy_neighbours
	@echo "==> How long a student waits for a check"
	@$(PYTHON) -m benchmarks.record practice_checks
	@echo "==> The attack suite"
	@$(PYTHON) -m benchmarks.record attack_suite
	@echo "==> Generated sources and notebooks"
	@$(PYTHON) -m benchmarks.record student_texts
	@echo "==> Quality of the exercises: standard controls, and mutants of the reference solutions"
	@$(PYTHON) -m autograder quality
	@echo "==> Right answers, with many seeds each"
	@$(PYTHON) -m benchmarks.record full_marks
	@echo "==> Every reference solution, with 1,000 seeds where that takes at most three minutes"
	@$(PYTHON) -m benchmarks.record reference_seeds
	@echo "==> Every solution, handed in for every other exercise"
	@$(PYTHON) -m benchmarks.record exchanged_answers
	@echo "==> The pages that an instructor of sixty opens"
	@$(PYTHON) -m benchmarks.record page_times

.PHONY: look
look: system-packages $(READY) $(BODIES)  ## look at the released notebooks, with pictures in $LOOK; needs Chromium (apt-get install chromium)
	@echo "==> Looking at the released notebooks; pictures go to $(LOOK)"
	@$(PYTHON) -m tests.browser.look "$(LOOK)"

.PHONY: gpu-check
gpu-check:  ## on a CUDA machine: check everything there and write benchmarks/results/DEVICE-DATE.json; --dry-run on any
	@# a bare GPU machine has torch and no network; any other gets its environment
	@# with + this also runs under `make gpu-check --dry-run`, which then tries everything on the CPU
	+@dry="$(if $(findstring n,$(firstword -$(MAKEFLAGS))),--dry-run)"; \
	if python3 -c 'import torch' 2>/dev/null; then python3 benchmarks/gpu_check.py $$dry; \
	else $(MAKE) MAKEFLAGS= $(READY) && $(PYTHON) benchmarks/gpu_check.py $$dry; fi

.PHONY: image
image:  ## build both Docker images: fusion-course:student and fusion-course:instructor
	@DOCKER="$(DOCKER)" scripts/image.sh student instructor

.PHONY: image-check
image-check:  ## build the student image and fail if a solution or a hidden case lies in it
	@DOCKER="$(DOCKER)" scripts/image.sh image-check

.PHONY: lint
lint: system-packages $(READY_TO_TEST)  ## ruff and mypy; changes nothing
	@echo "==> Lint and types"
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@# status 2: on a busy machine its processes may start later than it waits for them; it needs none
	@$(PYTHON) -m mypy || { [ $$? -eq 2 ] && echo "==> Types again, in one process" && $(PYTHON) -m mypy --num-workers 0; }

.PHONY: format
format: $(READY)  ## let ruff format and repair what it can
	@$(PYTHON) -m ruff check --fix .
	@$(PYTHON) -m ruff format .
