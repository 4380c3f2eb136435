"""The output of the operators of a slot, as the log of the drivers gets it."""

from collections.abc import Mapping

from dagkit.engine.program.masking import Masking
from dagkit.engine.program.operator_output import SlotOutput
from dagkit.engine.program.program import Program
from dagkit.engine.worker.protocol import WindowTask


def output_of(
    task: WindowTask, program: Program, operators: Mapping[int, str], *, takes_records: bool = True
) -> SlotOutput | None:
    """The output of a slot, with the names of its operators by their identity; None if there is no log for it."""
    if task.log is None:
        return None
    hide = Masking.of(lambda: program).hide
    return SlotOutput(task.log, program.application, task.window_id, operators, hide, takes_records)
