"""Reads the files that messages name, and acknowledges a message after the lines of its file are committed and visible.

The sender of a file puts its path into a queue. A message that is no path, and a path without a file, become lines of
`dead_letters`; other messages are not held up.
"""

from pydantic import Field, SecretStr

from dagkit import Config, Dag, StreamingApplication
from dagkit_operators import AcknowledgeFiles, FileSplitterBase, LineReader, Map, PartWriter, QueuePaths, RecordWriter


class MessageIngest(StreamingApplication):
    """Copies the lines of each file that a message names to `target`, one file for each block."""

    url: SecretStr = SecretStr("memory://")
    """The URL of the broker, such as amqp://user:password@host/vhost."""
    queue: str = "files"
    """The queue with the paths."""
    target: str = Field(default="output", min_length=1)
    """The directory of the lines."""
    dead_letters: str = Field(default="dead-letters", min_length=1)
    """The directory of the messages that name no file."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        messages = dag.add_operator("Messages", QueuePaths(url=self.url, queue=self.queue))
        splitter = dag.add_operator("Splitter", FileSplitterBase(on_missing="send"))
        reader = dag.add_operator("Block-reader", LineReader())
        writer = dag.add_operator("Lines", RecordWriter(file_path=self.target))
        acknowledge = dag.add_operator("Acknowledge", AcknowledgeFiles(url=self.url, queue=self.queue))
        rejected = dag.add_operator("Rejected", Map(lambda rejected: f"{rejected.reason}: {rejected.text}"))
        missing = dag.add_operator("Missing", Map(lambda file: f"there is no such file: {file.path}"))
        no_paths = dag.add_operator("No-paths", PartWriter(file_path=f"{self.dead_letters}/no-paths"))
        no_files = dag.add_operator("No-files", PartWriter(file_path=f"{self.dead_letters}/no-files"))

        dag.add_stream("paths", messages.output, splitter.input, acknowledge.files)
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, writer.input)
        dag.add_stream("files", splitter.files_metadata_output, acknowledge.metadata)
        dag.add_stream("read", reader.blocks_metadata_output, acknowledge.blocks)
        dag.add_stream("settled", messages.settled, acknowledge.settled)
        dag.add_stream("rejected", messages.rejected, rejected.input)
        dag.add_stream("missing", splitter.missing, missing.input, acknowledge.missing)
        dag.add_stream("no paths", rejected.output, no_paths.input)
        dag.add_stream("no files", missing.output, no_files.input)
