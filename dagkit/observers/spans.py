"""Emits each window as a trace of OpenTelemetry; uses only the API.

An application that wants traces sets up an SDK, which imports the API. Other applications do not need the API, and
this module does not load it for them.
"""

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from dagkit.engine.record.run_events import Failed, Measured, Observer, Resumed, RunEvent, StageRun


def tracing() -> list[Observer]:
    """The tracing observer, if the API of OpenTelemetry is imported; else an empty list."""
    return [Spans()] if "opentelemetry.trace" in sys.modules else []


class Spans:
    """An observer that emits the spans of each committed window: its stages, their blocks, and its commit.

    Stages run on workers, and their times come from the workers' clocks.
    """

    def __init__(self, provider: Any = None) -> None:
        from opentelemetry import trace  # noqa: PLC0415 - see above

        self._trace = trace
        self._tracer = trace.get_tracer("dagkit", sys.modules["dagkit"].__version__, provider)
        self._app = ""

    def __call__(self, event: RunEvent) -> None:
        match event:
            case Resumed():
                self._app = event.application
            case Measured():
                self._window(event)
            case Failed():
                self._failed(event)

    def _window(self, measured: Measured) -> None:
        taken = sum(
            p.tuple_count for partitions in measured.operators.values() for s in partitions for p in s.input_ports
        )
        begin = self._beginner(self._app, measured.window_id)
        window = begin("window", measured.began, None, {"dagkit.tuples": taken})
        inside = self._trace.set_span_in_context(window)
        for stage in measured.stages:
            attributes = {"dagkit.stage": stage.stage, "dagkit.slot": stage.slot, "dagkit.operators": stage.operators}
            span = begin(f"stage {stage.stage}", stage.began, inside, attributes)
            self._blocks(stage, begin, self._trace.set_span_in_context(span))
            span.end(_nanos(stage.began) + int(stage.millis * 1e6))
        begin("commit", measured.ended, inside, {}).end(_nanos(measured.committed))
        window.end(_nanos(measured.committed))

    def _blocks(self, stage: StageRun, begin: Callable[..., Any], inside: Any) -> None:
        for operator, stretches in stage.blocks.items():
            for stretch in stretches:
                began = stage.began + timedelta(milliseconds=stretch.after_millis)
                attributes = {
                    "dagkit.operator": operator,
                    "dagkit.block.start": stretch.start,
                    "file.path": stretch.source,
                }
                span = begin("block", began, inside, attributes)
                span.set_attribute("dagkit.block.stop", stretch.stop)
                span.end(_nanos(began) + int(stretch.millis * 1e6))

    def _failed(self, failed: Failed) -> None:
        attributes: dict[str, Any] = {
            "dagkit.app": self._app,
            "dagkit.window.id": failed.window_id,
            "dagkit.again": failed.again,
        }
        span = self._tracer.start_span("window failed", attributes=attributes)
        span.set_attribute("dagkit.operator", failed.operator or "")
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, failed.message))
        span.end()

    def _beginner(self, app: str, window_id: int) -> Callable[..., Any]:
        every: dict[str, Any] = {"dagkit.app": app, "dagkit.window.id": window_id}

        def begin(name: str, began: datetime, inside: Any, attributes: dict[str, Any]) -> Any:
            return self._tracer.start_span(name, inside, attributes={**every, **attributes}, start_time=_nanos(began))

        return begin


def _nanos(at: datetime) -> int:
    return int(at.timestamp() * 1e9)
