"""What the application promises before it runs: it compiles, and reading, filtering and writing are one stage."""

from pathlib import Path

from tests.applications import planned

HERE = Path(__file__).parent


def test_reader_filter_and_writer_are_one_stage_with_as_many_filters_and_writers_as_readers():
    plan, chain = planned(HERE, "Block-reader.prop.minReaders=4"), ("Block-reader", "Filter", "Record-writer")
    assert [stage.operators for stage in plan.stages] == [("File-splitter",), chain]
    assert [operator.count for operator in plan.operators] == [1, 4, 4, 4]


def test_without_its_property_file_the_chain_is_cut():
    keys = [f"{name}.port.input.attr.PARTITION_PARALLEL=false" for name in ("Filter", "Record-writer")]
    plan = planned(HERE, *keys, "Block-reader.prop.minReaders=2")
    assert [cut.kind for cut in plan.cuts] == ["driver", "counts"]
