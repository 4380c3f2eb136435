"""Lets the operator that found a file forget it, between two windows."""

from dagkit.api.files import why_not_forgotten
from dagkit.engine.changes.reconfiguration import Forgetting
from dagkit.engine.changes.requests import Refused
from dagkit.engine.history.history import is_named
from dagkit.engine.run.run_state import RunState
from dagkit.engine.worker.instances import live, saved
from dagkit.errors import did_you_mean
from dagkit.urls import shown


def forget_file(run: RunState, change: Forgetting) -> None:
    """Let an operator forget a file; raise `Refused` if it cannot. No window is in flight, and no scan is under way.

    An input operator's state is recorded at once, with the ID of the request; that of another one by the next commit,
    which names the request, too. So a driver that is killed in between performs the request once.
    """
    if change.operator not in run.program.operators:
        raise Refused(f"there is no operator {change.operator}", did_you_mean(change.operator, run.program.operators))
    reading = [item for item in run.pending_work.all() if is_named(item.source or "", change.path)]
    if any(not item.has_end for item in reading):
        help_ = "what is read continuously ends if it is renamed, or by a property such as ends_after_millis"
        raise Refused(f"{shown(change.path)} is still being read, without an end", help_)
    if reading:
        raise Refused(f"{shown(change.path)} is still being read", "ask again when its last block was read")
    if change.operator in run.program.sources:
        reason = run.driver_inputs.forget(change.operator, change.path, change.request, run.next_window)
    else:
        reason = _forget_in_graph(run, change)
    if reason:
        raise Refused(reason, "`dagkit files explain` shows what is known of it")


def _forget_in_graph(run: RunState, change: Forgetting) -> str:
    """Change the state of an operator in the graph; return why this is impossible, or ""."""
    name, home = change.operator, run.settings.home
    states = run.state.get(name, ({},))
    operator = live(run.program.operators[name][0], states[0])
    operator.setup(run.program.context_of(name, 0, run.next_window, home))
    reason = why_not_forgotten(operator, change.path, change.request)
    operator.teardown()
    if not reason:
        run.state = {**run.state, name: (saved(operator, name), *states[1:])}
    return reason
