"""The application of the soak: `python -m tests.soak.driver BACKEND KEY=VALUE…` runs it until it is stopped.

It prints one line of JSON for each window: its number, its milliseconds, and the processor time of the driver so far.
"""

import json
import sys
import time
from pathlib import Path

from dagkit import Config, Context, Dag, StreamingApplication
from dagkit.engine.record.run_events import Committed, RunEvent
from dagkit.launching import Machine, launch
from dagkit_operators import FileSplitterInput, Filter, LineReader, RecordWriter

KNOWN = "known"
"""The file that says that all files that were there at the start count as read."""


class KnowingSplitter(FileSplitterInput):
    """A splitter to which the files that exist at its first start count as read."""

    def setup(self, context: Context) -> None:
        super().setup(context)
        if not self.known and not self.next_block_id:
            self.adopt_files(lambda _path, _modified: True)
            Path(KNOWN).touch()


class Soaked(StreamingApplication):
    """Copies the lines of files that do not begin with a dot."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        read = dag.add_operator("Splitter", KnowingSplitter()) >> dag.add_operator("Reader", LineReader())
        keep = dag.add_operator("Filter", Filter(lambda line: not line.startswith(".")))
        read >> keep >> dag.add_operator("Writer", RecordWriter())


def report(event: RunEvent) -> None:
    if isinstance(event, Committed):
        line = {"window": event.window_id, "millis": event.millis, "cpu_millis": time.process_time() * 1000}
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    from tests.soak import driver  # the name of the module is that of the application

    backend, *definitions = sys.argv[1:]
    machine = Machine("reference") if backend == "reference" else Machine(cores=2)
    pairs = dict(each.split("=", 1) for each in definitions)
    launch(driver.Soaked(), pairs, machine=machine, path="state", durable=False, observers=[driver.report])
