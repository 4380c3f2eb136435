"""Operators are imported from their modules on first use, and their first argument sets their main property."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

import dagkit
import dagkit.testing
import dagkit_operators
from dagkit import Config
from dagkit.compiler import compile_application
from dagkit_operators import (
    AcknowledgeFiles,
    BranchBy,
    DeltaWriter,
    FileMerger,
    FileSplitterInput,
    FSSliceWriter,
    IcebergWriter,
    Items,
    KafkaWriter,
    LineReader,
    ParquetPartWriter,
    PartWriter,
    QueueInput,
    RecordWriter,
    SqlSplitter,
    SqlWriter,
    value,
)
from tests.processes import run_program

SERVER = {"bootstrap_servers": "here:9092"}


@pytest.mark.parametrize(
    ("operator", "same"),
    [
        (Items(["a", "b"]), Items(items=("a", "b"))),
        (FileSplitterInput("in"), FileSplitterInput(scanner={"files": ["in"]})),
        (FileSplitterInput(["a", Path("b")]), FileSplitterInput(scanner={"files": ["a", "b"]})),
        (
            FileSplitterInput("in", scanner={"recursive": False}, block_size=9),
            FileSplitterInput(scanner={"files": ["in"], "recursive": False}, block_size=9),
        ),
        (PartWriter("out"), PartWriter(file_path="out")),
        (PartWriter(Path("out"), max_count=3), PartWriter(file_path="out", max_count=3)),
        (ParquetPartWriter("out"), ParquetPartWriter(file_path="out")),
        (RecordWriter("out"), RecordWriter(file_path="out")),
        (FSSliceWriter("out"), FSSliceWriter(file_path="out")),
        (FileMerger("out"), FileMerger(file_path="out")),
        (DeltaWriter("table"), DeltaWriter(uri="table")),
        (IcebergWriter("a.b", catalog={}), IcebergWriter(table="a.b", catalog={})),
        (SqlWriter("trips", url="sqlite:///a"), SqlWriter(table="trips", url="sqlite:///a")),
        (SqlSplitter("trips", url="sqlite:///a", key="id"), SqlSplitter(table="trips", url="sqlite:///a", key="id")),
        (KafkaWriter("news", **SERVER), KafkaWriter(topic="news", **SERVER)),
        (QueueInput("jobs", url="memory://"), QueueInput(queue="jobs", url="memory://")),
        (AcknowledgeFiles("jobs", url="memory://"), AcknowledgeFiles(queue="jobs", url="memory://")),
        (BranchBy({"big": value > 9}), BranchBy(predicates={"big": value > 9})),
    ],
    ids=lambda operator: type(operator).__name__,
)
def test_the_first_argument_is_the_main_property(operator, same):
    assert operator.faults == same.faults
    assert repr(operator) == repr(same)


def test_a_property_that_is_given_twice_is_refused():
    with pytest.raises(TypeError, match="items is set twice, without its name and by it"):
        Items(["a"], items=("b",))
    with pytest.raises(TypeError, match="multiple values for keyword argument 'files'"):
        FileSplitterInput("a", scanner={"files": ["b"]})


def test_other_properties_are_set_by_their_names():
    with pytest.raises(TypeError, match="only file_path can be set without its name; it has file_path, "):
        PartWriter("out", 3)
    with pytest.raises(TypeError, match="properties are set by their names; it has event_time, "):
        LineReader("in")


def test_a_property_file_changes_what_the_first_argument_set(tmp_path):
    compiled = compile_application(
        lambda dag, conf: dag.add_operator("splitter", FileSplitterInput("in")),
        Config.of({"dt.operator.splitter.prop.scanner.files": str(tmp_path)}),
    )
    assert compiled.plan.by_name["splitter"].properties["scanner"]["files"] == [str(tmp_path)]


@pytest.mark.parametrize("package", [dagkit, dagkit.testing, dagkit_operators])
def test_each_listed_name_is_what_its_module_defines(package):
    assert len(package.__all__) > 10
    for name, home in package._HOMES.items():
        assert getattr(package, name) is getattr(import_module(home), name)


def test_an_unknown_name_is_refused():
    with pytest.raises(ImportError, match="cannot import name 'Nothing' from 'dagkit_operators'"):
        from dagkit_operators import Nothing  # noqa: F401, PLC0415


@pytest.mark.slow
def test_an_application_imports_only_the_rooms_that_it_uses():
    code = "import sys; from dagkit_operators import Filter, LineReader; print(*sys.modules)"
    loaded = run_program([sys.executable, "-c", code]).stdout.split()
    assert "dagkit_operators.reading.readers" in loaded
    rooms = {name.split(".")[1] for name in loaded if name.startswith("dagkit_operators.")}
    assert not rooms & {"dataframes", "event_time", "kafka", "queues", "sql", "tables"}
