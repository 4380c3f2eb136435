"""Reads Avro container files by data blocks, and writes one field of each record.

A data block is the smallest part that can be read alone, so readers claim data blocks, and a file can be split between
any two of them.
"""

from typing import Any

from pydantic import Field

from dagkit import Config, Dag, StreamingApplication
from dagkit_operators import AvroReader, FileSplitterInput, Map, PartWriter


class AvroBlocks(StreamingApplication):
    """Reads one or many files with all available readers."""

    field: str = Field(default="name")
    """The field of each record to write."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        field = self.field

        def value_of(record: dict[str, Any]) -> str:
            return str(record[field])

        splitter = dag.add_operator("Splitter", FileSplitterInput())
        reader = dag.add_operator("Reader", AvroReader())
        values = dag.add_operator("Values", Map(value_of))
        writer = dag.add_operator("Writer", PartWriter())

        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("records", reader.messages, values.input)
        dag.add_stream("values", values.output, writer.input)
