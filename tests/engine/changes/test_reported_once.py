"""A failure after a change of partitions is reported by the run alone."""

from typing import Any, cast

from dagkit.engine.changes.reconfiguration import Reconfiguration, Scaling
from dagkit.errors import DagkitError


def test_a_failed_window_is_not_logged_for_a_change_without_a_request(caplog):
    nothing = cast("Any", None)
    changes = Reconfiguration(nothing, nothing)
    changes._made.append((Scaling("Read", 2), nothing))
    changes.failed(DagkitError("the window failed"))
    assert (caplog.records, changes.is_made) == ([], False)
