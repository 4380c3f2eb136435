"""Counts the words of text files: each reader counts the words that it reads, and the counts are added up by word.

`properties.xml` sets what runs as one stage, and how many partitions add up. A launch with new input ends by writing
all counts to a new folder, named after the number of its last window: the last folder is the newest.

    cat output/$(ls output | tail -1)/*
"""

import re

from dagkit import Config, Dag, StreamingApplication
from dagkit_operators import CountByKey, FileSplitterInput, FlatMap, LineReader, PartWriter, SumByKey


def words(line: str) -> list[str]:
    """The words of a line, in lower case."""
    return re.findall(r"\w+", line.lower())


def line_of(counted: tuple[str, int]) -> str:
    """The output line for a word and its count."""
    return f"{counted[0]}\t{counted[1]}"


FILE_NAME = "{window:06}/part-{partition:05}-{number:05}"
"""The window comes first, because all partitions write in the same window; their file numbers differ if one had no
word."""


class WordCount(StreamingApplication):
    """Writes each word once with its count, when all input available for now is counted."""

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
