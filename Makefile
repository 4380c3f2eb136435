# Everything that CI runs is a target here, and CI calls nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The versions that tests run with. `make newest` runs them with the newest ones.
CONSTRAINTS ?= constraints.txt
CONSTRAINED := --quiet --no-compile $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
# A process for each core, and at most four: each may start Spark, a broker and a database.
PROCESSES := $(shell getconf _NPROCESSORS_ONLN)
PYTEST := $(BIN)/python -m pytest -n $(PROCESSES) --maxprocesses 4 $(if $(REPORT),--junitxml $(REPORT))

# Many images set this. Each of the hundreds of processes that tests start would then compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: all run check test trials trials-services soak lock newest audit bench bench-check format lint types units services site wheels clean

all: test

# An application on a local Spark, with a text that it makes, or with yours: make run TEXT=/var/log/syslog
run: $(VENV)/installed
	$(BIN)/python -m apps.line_filter.run $(if $(TEXT),"$(TEXT)")

# What to run before each commit: form, types, and the tests that take no time and use no service.
check: lint types units

# The gate of each change: `check`, one test of each mechanism and of each service, and every page of the documents.
# It ends with pytest's own summary.
test:
	$(MAKE) --no-print-directory --jobs=3 --output-sync=target lint types services $(VENV)/classes
	$(PYTEST) -m "not trial"

# Everything else: kills, clusters, long searches. It reports, with the slowest tests, and keeps no change out.
# `make trials TRIALS=kafka` runs those of one folder, module or service; KILLS=50 kills more often.
KILLS ?= 2
trials: $(VENV)/ready $(VENV)/classes services trials-services
	$(PYTEST) -m "trial or hypothesis" -W error::pytest.PytestUnraisableExceptionWarning --hypothesis-profile trials --trials $(KILLS) --durations 50 $(if $(TRIALS),--only $(TRIALS))

format: $(VENV)/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# A long run, and many faults on Spark and on the reference: some hours. SOAK="--minutes 60" lets the run last longer.
soak: $(VENV)/ready services
	$(BIN)/python -m tests.soak $(SOAK)
	$(MAKE) trials KILLS=50

# Write the newest versions of all that the tests install into constraints.txt.
lock:
	rm -rf $(VENV)/lock && $(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --editable '.[dev]'
	$(VENV)/lock/bin/python -m pip freeze --exclude-editable > constraints.txt
	rm -rf $(VENV)/lock

# The gate with the newest versions of all that the tests install.
newest:
	$(MAKE) test VENV=.venv-newest CONSTRAINTS=

# Whether a vulnerability of what is installed is known. It fails if no database of advisories answers.
audit: $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python -m pip install --quiet pip-audit
	$(VENV)/audit/bin/pip-audit --strict --skip-editable --path "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

# All benchmarks, in less than 40 minutes; writes docs/benchmarks.md and its charts.
bench: $(VENV)/ready services
	$(BIN)/python -m bench every

# Whether this tree is slower than a commit: make bench-check COMMIT=main~1
bench-check: $(VENV)/ready
	$(BIN)/python -m bench check $(COMMIT)

lint: $(VENV)/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m tests.lint

types: $(VENV)/ready
	$(BIN)/mypy

units: $(VENV)/ready
	$(PYTEST) -m "not slow and not service and not trial"

# The documents as a site, in build/site.
site: $(VENV)/ready
	$(BIN)/python docs/site/build.py

# Distributions: the sources, a wheel for every machine, and wheels with compiled code, by cibuildwheel (which takes Docker).
wheels:
	rm -rf dist
	CC=false $(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(PYTHON) -m pip install --quiet build cibuildwheel
	$(PYTHON) -m build --sdist
	$(PYTHON) -m cibuildwheel --output-dir dist

# What the tests of services download. Where it cannot be had, those tests are skipped, and name the command; in CI, they fail.
services:
	-tests/services/kafka.sh fetch

trials-services:
	-tests/services/yarn.sh fetch
	-tests/services/hdfs.sh fetch
	-tests/services/azurite.sh fetch

SOURCES := pyproject.toml hatch_build.py $(wildcard operators/dagkit_operators/native/*.c)

# What running takes: a Java runtime too, if the machine has none.
$(VENV)/installed: $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.$(shell command -v java > /dev/null || echo "[java]")'
	touch $@

# What testing takes, besides. Python compiles a module when it is first imported: compiling all of them takes longer.
# uv takes a third of the time of pip, which is the second try: a registry may have a bad moment, and uv does not read
# the index that pip is configured with.
$(VENV)/ready: $(SOURCES) $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(CONSTRAINED) uv && $(BIN)/python -m uv pip install $(CONSTRAINED) --editable '.[dev]' || \
		$(BIN)/python -m pip install $(CONSTRAINED) --editable '.[dev]'
	touch $(VENV)/installed $@

# An archive of Java's classes, with which each Spark of the tests starts in half the time.
$(VENV)/classes: $(VENV)/ready dagkit/backends/spark/session/session_settings.py
	mkdir -p $(VENV)/cache/java && chmod u+w $(VENV)/cache/java
	DAGKIT_CACHE=$(VENV)/cache $(BIN)/python -c "from dagkit.backends.spark.session.recording import record; record()"
	chmod a-w $(VENV)/cache/java
	touch $@

clean:
	-chmod -R u+w $(VENV)/cache
	rm -f operators/dagkit_operators/native/lib*.so
	rm -rf $(VENV) .venv-newest .services build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
