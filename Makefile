# Everything that CI runs is a target here, and CI calls nothing else.
# Tests run in one process more than there are cores, since many wait, and in at most four: each may start Spark, a broker
# and a database.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PROCESSES := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST := $(BIN)/python -m pytest -n $(PROCESSES) --maxprocesses 4

.PHONY: all run check test soak kills audit bench bench-check format lint types fast services site wheels clean

all: lint types test

# An application on a local Spark, with a text that it makes, or with yours: make run TEXT=/var/log/syslog
run: $(VENV)/installed
	$(BIN)/python -m apps.line_filter.run $(if $(TEXT),"$(TEXT)")

# What to run before each commit: form, types, and the tests that take no time.
check: lint types fast

# Everything there is to prove, slowest last; ends with pytest's own summary.
test: $(VENV)/ready $(VENV)/classes lint types services
	$(PYTEST) -m "slow or not slow"

format: $(VENV)/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# A long run, and many faults on Spark and on the reference: some hours. SOAK="--minutes 60" lets the run last longer.
soak: $(VENV)/ready services
	$(BIN)/python -m tests.soak $(SOAK)
	$(PYTEST) -m slow tests/faults --trials 224
	$(MAKE) kills

# Brokers, databases, drivers and workers that are killed, each TRIALS times on the reference and a tenth of that on Spark.
TRIALS ?= 50
kills: $(VENV)/ready services
	$(PYTEST) -m slow --trials $(TRIALS) \
		tests/backends/test_kafka_kills.py \
		tests/operators/queues/test_on_rabbitmq.py \
		tests/operators/sql/test_trials.py tests/operators/sql/test_copying_trials.py \
		tests/operators/tables/test_lake_trials.py

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

types: $(VENV)/ready
	$(BIN)/mypy

fast: $(VENV)/ready
	$(PYTEST) -m "not slow"

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

# What the tests against real services download. Without it, those tests are skipped, and their reports name the command.
services:
	-tests/services/kafka.sh fetch
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
$(VENV)/ready: $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev]'
	touch $(VENV)/installed $@

# An archive of Java's classes, with which each Spark of the tests starts in half the time.
$(VENV)/classes: $(VENV)/ready dagkit/backends/spark/session_settings.py
	mkdir -p $(VENV)/cache/java && chmod u+w $(VENV)/cache/java
	DAGKIT_CACHE=$(VENV)/cache $(BIN)/python -c "from dagkit.backends.spark.recording import record; record()"
	chmod a-w $(VENV)/cache/java
	touch $@

clean:
	-chmod -R u+w $(VENV)/cache
	rm -f operators/dagkit_operators/native/lib*.so
	rm -rf $(VENV) .services build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
