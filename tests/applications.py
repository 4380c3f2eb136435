"""The applications of `apps/`, launched by the command in the folder of a test."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from dagkit.cli import main
from dagkit.plan import read_plan

ON_SPARK = [pytest.mark.slow, pytest.mark.spark, pytest.mark.trial]
on_each_backend = pytest.mark.parametrize("backend", ["--reference", pytest.param("--cores=2", marks=ON_SPARK)])


def launched(application, *options, **properties):
    """Launch an application until its input ends; `Splitter__blockSize=9` sets a property of an operator."""
    keys = {f"dt.operator.{key.replace('__', '.prop.')}": value for key, value in properties.items()}
    definitions = [word for key, value in keys.items() for word in ("-D", f"{key}={value}")]
    answer = CliRunner().invoke(main, ["launch", str(application), "--once", "--json", *definitions, *options])
    assert answer.exit_code == 0, answer.output


def written(folder="output"):
    """The lines of all output files."""
    files = sorted(Path(folder).iterdir()) if Path(folder).exists() else []
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def planned(application, *keys):
    """The plan of an application with keys below `operator`."""
    definitions = [word for key in keys for word in ("-D", f"dt.operator.{key}")]
    return read_plan(CliRunner().invoke(main, ["plan", str(application), *definitions, "--json"]).stdout)


def stages(application):
    """The operators of each stage."""
    return [stage.operators for stage in planned(application).stages]
