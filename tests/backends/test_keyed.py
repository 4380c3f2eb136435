"""Keyed operators, whose keys and unifiers depend on their properties, do on Spark what they do in the reference."""

import pytest

from dagkit.launching import Machine, launch
from dagkit_operators import OuterJoin
from tests.operators.keyed import test_joined_folders as folders
from tests.operators.keyed.test_partitions import JOINED, WAYS, result


@pytest.mark.parametrize("way", ["keyed partitions", pytest.param("mirrored partitions", marks=pytest.mark.trial)])
def test_the_result_is_that_of_the_reference(way, spark, tmp_path, monkeypatch):
    joined, once = result(tmp_path / "spark", WAYS[way], monkeypatch, Machine(spark=spark))
    assert joined == repr(JOINED)
    assert once == result(tmp_path / "reference", WAYS[way], monkeypatch, Machine("reference"))[1]


def test_one_launch_joins_files_that_were_found_in_different_windows(spark, tmp_path):
    folders.write(tmp_path, "orders", folders.ORDERS)
    folders.write(tmp_path, "customers", folders.CUSTOMERS)
    launch(
        folders.folders_joined(tmp_path, OuterJoin), until="once", machine=Machine(spark=spark), path=tmp_path / "app"
    )
    assert folders.written(tmp_path) == sorted(folders.PAIRS + folders.ALONE[OuterJoin])
