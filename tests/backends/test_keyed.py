"""Keyed operators, whose keys and unifiers depend on their properties, do on Spark what they do in the reference."""

import pytest

from dagkit.launching import Machine, launch
from dagkit_operators import Filter, Map, OuterJoin, Validate
from tests.operators.keyed import test_joined_folders as folders
from tests.operators.keyed.test_partitions import JOINED, WAYS, result
from tests.operators.records import test_rejected_places as rejected


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("way", ["keyed partitions", pytest.param("mirrored partitions", marks=pytest.mark.trial)])
def test_the_result_is_that_of_the_reference(way, spark, tmp_path, monkeypatch):
    joined, once = result(tmp_path / "spark", WAYS[way], monkeypatch, Machine(spark=spark))
    assert joined == repr(JOINED)
    assert once == result(tmp_path / "reference", WAYS[way], monkeypatch, Machine("reference"))[1]


@pytest.mark.slow
@pytest.mark.spark
def test_one_launch_joins_files_that_were_found_in_different_windows(spark, tmp_path):
    folders.write(tmp_path, "orders", folders.ORDERS)
    folders.write(tmp_path, "customers", folders.CUSTOMERS)
    launch(
        folders.folders_joined(tmp_path, OuterJoin), until="once", machine=Machine(spark=spark), path=tmp_path / "app"
    )
    assert folders.written(tmp_path) == sorted(folders.PAIRS + folders.ALONE[OuterJoin])


@pytest.mark.slow
@pytest.mark.spark
def test_a_rejected_item_names_its_file(spark, tmp_path):
    (tmp_path / "in").mkdir()
    for name, content in rejected.FILES.items():
        (tmp_path / "in" / name).write_text(content)
    launch(
        rejected.rejecting(tmp_path, Map(str.strip), Filter(len), Validate(int)),
        until="once",
        machine=Machine(spark=spark),
        path=tmp_path / "app",
    )
    assert [line.split()[::2] for line in rejected.written(tmp_path)] == [["a.txt", "x"], ["b.txt", "y"]]
