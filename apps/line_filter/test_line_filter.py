"""What the application promises before it runs: it compiles, and reading, filtering and writing are one stage."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dagkit.cli import main
from dagkit.plan import read_plan

HERE = str(Path(__file__).parent)


def answer(*arguments):
    return CliRunner().invoke(main, list(arguments))


def test_it_is_valid():
    assert answer("validate", HERE).exit_code == 0


def test_reader_filter_and_writer_are_one_stage():
    plan = read_plan(answer("plan", HERE, "--json").stdout)
    assert [stage.operators for stage in plan.stages] == [
        ("File-splitter",),
        ("Block-reader", "Filter", "Record-writer"),
    ]


def test_four_readers_bring_four_filters_and_four_writers():
    plan = read_plan(answer("plan", HERE, "-D", "dt.operator.Block-reader.prop.minReaders=4", "--json").stdout)
    assert {operator.name: operator.count for operator in plan.operators} == {
        "File-splitter": 1,
        "Block-reader": 4,
        "Filter": 4,
        "Record-writer": 4,
    }


def test_without_its_property_file_the_chain_is_cut():
    keys = [f"dt.operator.{name}.port.input.attr.PARTITION_PARALLEL=false" for name in ("Filter", "Record-writer")]
    definitions = [word for key in keys for word in ("-D", key)]
    definitions += ["-D", "dt.operator.Block-reader.prop.minReaders=2"]
    plan = read_plan(answer("plan", HERE, *definitions, "--json").stdout)
    assert [cut.kind for cut in plan.cuts] == ["driver", "counts"]


@pytest.mark.parametrize("kind", ["logical", "physical"])
def test_its_drawing_names_every_operator(kind):
    form = ["--physical"] if kind == "physical" else []
    picture = json.loads(answer("graph", HERE, "-f", "json", *form).stdout)
    drawn = json.dumps(picture)
    assert all(name in drawn for name in ("File-splitter", "Block-reader", "Filter", "Record-writer"))
