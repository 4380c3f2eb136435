"""Readers of many small files are compared on files that are made for it, and written into the page."""

import json

import pytest

from bench.small_files import BATCH, DAGKIT, LEAST, STREAM, Measured, main, page


def test_the_page_says_how_many_times_as_long_the_readers_of_spark_take():
    measured = Measured(1000, {DAGKIT: [1.0, 2.0, 3.0], BATCH: [3.0, 3.0, 4.0], STREAM: [30.0, 40.0, 20.0]})
    assert "| dagkit | 2.00 | 1.00 to 3.00 | 500 | 1.0 |  |" in page(measured)
    assert "| Spark, batch | 3.00 | 3.00 to 4.00 | 333 | 1.5 | 2 |" in page(measured)


@pytest.mark.parametrize(("seconds", "holds"), [((20.0, 100.0), True), ((19.0, 100.0), False), ((20.0, 99.0), False)])
def test_both_bounds_must_hold(seconds, holds):
    taken = {name: [one] for name, one in zip(LEAST, seconds, strict=True)}
    assert Measured(1000, {DAGKIT: [10.0], **taken}).holds is holds


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.spark
def test_each_contestant_reads_all_files(capsys):
    main(["--files", "20", "--rounds", "1", "--json"])
    measured = json.loads(capsys.readouterr().out)
    assert (measured["files"], list(measured["seconds"])) == (20, [DAGKIT, *LEAST])
