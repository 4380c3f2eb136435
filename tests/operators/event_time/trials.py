"""An application with all of event time, whose input comes in phases.

`python -m tests.operators.event_time.trials HOME` runs it on Spark. It reads two folders of files, one of which is idle
in the second phase. There are sessions that merge over phases, and records that are late and allowed, or too late. Each
phase is read in one window, so every run sends the same.
"""

import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from dagkit import InputPort, OperatorContext, OutputPort, RowOperator, StatelessPartitioner
from dagkit.engine.program.points import Point
from dagkit.launching import Machine, launch
from dagkit_operators import (
    AggregateByTime,
    FileSplitterInput,
    LineReader,
    Map,
    PartWriter,
    Record,
    SessionWindows,
    StreamMerger,
    TumblingWindows,
    WindowResult,
)
from tests.old_files import old_file
from tests.operators.driver_kills import kill_once
from tests.operators.event_time.sums import START
from tests.operators.ways import placed

PHASES: Sequence[tuple[Sequence[tuple[str, int]], Sequence[tuple[str, int]]]] = (
    # sessions of `a` at 0 to 6 and 12; `b` is open at 20
    ((("a", 0), ("a", 3), ("a", 1), ("b", 9), ("a", 12), ("b", 20)), (("c", 20), ("c", 22))),
    # 17 joins `b`; 12 of `a` is late and merges with 16; the second folder is idle
    ((("b", 17), ("a", 16), ("b", 24), ("c", 30)), ()),
    # 3 of `a` is too late; 26 of `c` is late and allowed; the second folder comes back
    ((("a", 3), ("c", 26), ("b", 41), ("a", 1)), (("c", 41), ("c", 60))),
    ((("d", 90),), (("d", 90),)),
)
"""Keys and seconds that each phase adds to the two folders."""


def add(home: Path, phase: int) -> None:
    for folder, records in zip(("one", "two"), PHASES[phase], strict=True):
        (home / folder).mkdir(parents=True, exist_ok=True)
        if records:
            lines = [f"{(START + timedelta(seconds=second)).isoformat()} {key} {second}\n" for key, second in records]
            old_file(home / folder / f"{phase}.txt", "".join(lines))


class Kills(RowOperator):
    """Sends the values of records. At one second, it kills its worker once."""

    kind = "event-time-trials.kills/1"
    input = InputPort[Record[Any]]()
    output = OutputPort[Any](main=True)
    at: int = -1
    marker: str = ""

    def process(self, item: Record[Any]) -> Iterator[Any]:
        if int(item.value[2]) == self.at:
            kill_once(Path(self.marker))
        yield item.value


def shown(result: WindowResult[str, int]) -> str:
    start, end = (int((each - START).total_seconds()) for each in (result.start, result.end))
    return f"{result.key} {start} {end} {result.result} {result.revision}"


def timed(home, at=-1, partitions=2):
    """The application; with `at`, a worker is killed at that second."""

    def draw(dag, conf):
        merge = dag.add_operator("merge", StreamMerger[Any]())
        of_two = (("one", merge.data1, {"out_of_order_millis": 2000}), ("two", merge.data2, {"idle_millis": 0}))
        for folder, inlet, given in of_two:
            operators = {
                f"find-{folder}": FileSplitterInput(scanner={"files": [str(home / folder)]}),
                f"read-{folder}": LineReader(event_time=lambda line: line.split()[0], **given),
                f"parse-{folder}": Map(str.split),
            }
            placed(dag, **operators)[f"parse-{folder}"] >> inlet
        kills = merge >> dag.add_operator("kills", Kills(at=at, marker=str(home / "killed")))
        for name, windows in (("sessions", SessionWindows(gap_millis=5000)), ("tens", TumblingWindows(millis=10_000))):
            aggregate = AggregateByTime(
                time=lambda item: item[0],
                key=lambda item: item[1],
                of=lambda item: int(item[2]),
                allowed_lateness_millis=5000,
                windows=windows,
            )
            kills >> dag.add_operator(name, aggregate)
            dag.set_operator_attribute(aggregate, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
            outs = (f"{name}-lines", aggregate, Map(shown)), (f"{name}-late", aggregate.late, Map(" ".join))
            for lines, outlet, as_text in outs:
                file = "out" if outlet is aggregate else "late-out"
                writer = PartWriter(file_path=str(home / f"{name}-{file}"))
                outlet >> dag.add_operator(lines, as_text) >> dag.add_operator(f"{name}-{file}", writer)

    return draw


def written(home: Path) -> dict[str, list[str]]:
    """The lines of each output, sorted: which of two partitions sends first is open."""
    names = [f"{name}-{kind}" for name in ("sessions", "tens") for kind in ("out", "late-out")]
    parts = {name: [part.read_text() for part in (home / name).rglob("*") if part.is_file()] for name in names}
    return {name: sorted("".join(texts).splitlines()) for name, texts in parts.items()}


def report(point: Point, window_id: int) -> None:
    sys.stdout.write(f"{window_id} {point}\n")
    sys.stdout.flush()


def run_on_spark(home: Path) -> None:
    launch(timed(home), until="idle", machine=Machine(), path=home / "app", probe=report, durable=False)


if __name__ == "__main__":
    from tests.operators.event_time import trials  # the name of the module is that of the application

    trials.run_on_spark(Path(sys.argv[1]))
