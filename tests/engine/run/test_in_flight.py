"""Two windows in flight: what the older one leaves is kept apart from what only the younger one was given."""

from dagkit import Block, Config, Dag
from dagkit.compiler import compile_application
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.next_checkpoint import next_checkpoint
from dagkit.engine.checkpoint.outcome import ChangesInForce, ConsumedWork, InputStatus, RemainingWork, WindowOutcome
from dagkit.engine.program.lower import program_of
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.protocol import Answer, Report
from dagkit_operators import DirectoryScanner, FileSplitterInput, LineReader
from tests.engine.items import item_of


def draw(dag: Dag, conf: Config) -> None:
    splitter = dag.add_operator("split", FileSplitterInput(scanner=DirectoryScanner(files=("in",))))
    dag.add_stream(
        "blocks", splitter.blocks_metadata_output, dag.add_operator("read", LineReader()).blocks_metadata_input
    )


PROGRAM = program_of(compile_application(draw))
(TARGET,) = PROGRAM.targets.values()


def waiting(start: int, end: int) -> WorkItem:
    """A stretch of one source, whose stretches all go by one number."""
    return item_of(TARGET.address, Block(0, "a", start, end), "a")


def left_after(older: WorkItem, left: WorkItem, younger: WorkItem, allocated: list[WorkItem]) -> list[tuple[int, int]]:
    """What waits after the older window, as far as it knows."""
    outcome = WindowOutcome(
        PROGRAM,
        window_id=1,
        consumed=ConsumedWork([older], {TARGET.address: [[older]]}),
        answer=Answer((Report(0, 0, left=(left,)),)),
        state={},
    )
    remaining = RemainingWork(younger=[ConsumedWork([younger], {TARGET.address: [allocated]})])
    checkpoint = next_checkpoint(Checkpoint(), outcome, remaining, InputStatus(), ChangesInForce())
    return [(each.start, each.end) for each in checkpoint.queue]


def test_what_was_left_of_a_block_waits_though_a_younger_one_has_its_number():
    assert left_after(waiting(0, 10), waiting(3, 10), waiting(10, 20), [waiting(10, 20)]) == [(3, 10)]


def test_pieces_of_a_block_that_only_the_younger_one_was_given_are_unknown_to_the_older():
    assert left_after(waiting(0, 10), waiting(3, 10), waiting(10, 20), [waiting(10, 14), waiting(14, 20)]) == [(3, 10)]
