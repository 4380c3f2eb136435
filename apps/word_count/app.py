"""Counts the words of text files: each reader counts what it reads, and what they counted is added up by word.

`properties.xml` says what runs as one stage, and how many share the adding up. A launch that counted anything new ends
by writing all counts into a new folder, which has the number of its last window: the last folder holds the newest.

    cat output/$(ls output | tail -1)/*
"""

import re

from dagkit import Config, Dag, StreamingApplication
from dagkit_operators import CountByKey, FileSplitterInput, FlatMap, LineReader, PartWriter, SumByKey


def words(line: str) -> list[str]:
    """The words of a line in lower case."""
    return re.findall(r"\w+", line.lower())


def line_of(counted: tuple[str, int]) -> str:
    """A word and its count, as they are written."""
    return f"{counted[0]}\t{counted[1]}"


FILE_NAME = "{window:06}/part-{partition:05}-{number:05}"
"""The window goes first, for all partitions write in the same: their own numbers differ where one had no word."""


class WordCount(StreamingApplication):
    """How often each word comes. Each is written once, with its count, when all is counted that there is for now."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        splitter = dag.add_operator("File-splitter", FileSplitterInput())
        reader = dag.add_operator("Block-reader", LineReader())
        split = dag.add_operator("Words", FlatMap(words))
        count = dag.add_operator("Count", CountByKey())
        total = dag.add_operator("Total", SumByKey())
        writer = dag.add_operator("Writer", PartWriter(format=line_of, file_name=FILE_NAME))

        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, split.input)
        dag.add_stream("words", split.output, count.input)
        dag.add_stream("counts", count.counts, total.input)
        dag.add_stream("totals", total.finals, writer.input)
