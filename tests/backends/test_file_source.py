"""What Spark's own file source does with a file that changes: the column of docs/file-policy.md."""

import gzip
import os
import shutil
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.trial]


class Source:
    """A stream of the lines in a folder, which is started again for each batch with what it has recorded."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark = spark
        self.home = home
        self.folder = home / "in"
        self.folder.mkdir()

    def look(self, inputs: int = 1) -> list[str]:
        """The lines that another run reads, through so many inputs that name the folder."""
        out = self.home / "out"
        named = [self.spark.readStream.text(str(self.folder)) for _ in range(inputs)]
        lines = reduce(DataFrame.union, named).writeStream.format("text")
        lines = lines.option("path", str(out)).option("checkpointLocation", str(self.home / "checkpoint"))
        lines.trigger(availableNow=True).start().awaitTermination()
        read = sorted(line for part in out.glob("part-*") for line in part.read_text().splitlines())
        for part in out.glob("part-*"):
            part.write_text("")
        return read

    def write(self, name: str, content: str, at: int) -> None:
        (self.folder / name).write_text(content)
        os.utime(self.folder / name, (at, at))

    def forget_last_run(self) -> None:
        """Leave the last batch planned, as if the run had ended before it was read."""
        for log in (self.home / "checkpoint" / "commits", self.home / "out" / "_spark_metadata"):
            last = max(int(entry.name) for entry in log.glob("[0-9]*"))
            (log / str(last)).unlink()
            (log / f".{last}.crc").unlink()


def test_what_the_file_source_of_spark_does_with_files_that_change(spark, tmp_path):
    source = Source(spark, tmp_path)
    now = 1_700_000_000
    source.write("a.log", "one\n", at=now)
    assert source.look() == ["one"]

    source.write("a.log", "eno\n", at=now)  # overwritten with the same length in the same second: lost
    assert source.look() == []
    source.write("a.log", "two\n", at=now + 10)  # overwritten: lost
    source.write("b.log", "b\n", at=now)
    assert source.look() == ["b"]

    source.write("b.log", "b\nmore\n", at=now + 20)  # grown: lost
    source.write("late.log", "late\n", at=now - 8 * 86_400)  # older than maxFileAge of seven days: lost
    source.write("c.log.tmp", "unfinished\n", at=now + 20)  # read
    source.write(".hidden", "hidden\n", at=now + 20)
    source.write("_hidden", "hidden\n", at=now + 20)
    source.write("c.log._COPYING_", "unfinished\n", at=now + 20)
    assert source.look() == ["unfinished"]

    (source.folder / "a.log").rename(source.folder / "renamed.log")  # read again
    shutil.copy2(source.folder / "b.log", source.folder / "copy.log")  # read again
    (source.folder / "late.log.1.gz").write_bytes(gzip.compress(b"late\n"))
    assert source.look() == ["b", "late", "more", "two"]


def test_the_file_source_of_spark_reads_a_file_once_for_each_input_that_names_it(spark, tmp_path):
    source = Source(spark, tmp_path)
    source.write("a.log", "one\n", at=1_700_000_000)
    assert source.look(inputs=2) == ["one", "one"]


def test_what_the_file_source_of_spark_does_with_deleted_files(spark, tmp_path):
    source, now = Source(spark, tmp_path), 1_700_000_000
    source.write("a.log", "one\n", at=now)
    assert source.look() == ["one"]
    (source.folder / "a.log").unlink()
    assert source.look() == []
    source.write("a.log", "one\n", at=now)  # it returns unchanged: known
    assert source.look() == []

    source.write("b.log", "two\n", at=now + 10)
    assert source.look() == ["two"]
    source.forget_last_run()
    assert source.look() == ["two"]
    source.forget_last_run()
    (source.folder / "b.log").unlink()
    assert source.look() == []  # it was to be read, and is lost without an error


def test_the_file_source_of_spark_reads_what_is_stated_beside_a_file(spark, tmp_path):
    source = Source(spark, tmp_path)
    source.write("a.log", "one\n", at=1_700_000_000)
    source.write("a.log.md5", f"{'0' * 32}  a.log\n", at=1_700_000_000)  # another checksum
    assert source.look() == [f"{'0' * 32}  a.log", "one"]


def test_the_file_source_of_spark_reads_one_file_again_only_with_all_others(spark, tmp_path):
    source = Source(spark, tmp_path)
    source.write("a.log", "one\n", at=1_700_000_000)
    source.write("b.log", "two\n", at=1_700_000_000)
    assert source.look() == ["one", "two"]
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.rmtree(tmp_path / "out")
    assert source.look() == ["one", "two"]
