"""Windows as traces."""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from dagkit.engine.record.run_events import Failed, Resumed
from dagkit.observers.spans import Spans, tracing
from tests.engine.cast import Desk, lines_through_filter, some_lines
from tests.old_files import aged


@pytest.fixture
def exported():
    return InMemorySpanExporter()


@pytest.fixture
def spans(exported):
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exported))
    return Spans(provider)


def inside(spans, outer):
    """The spans whose parent this is, as they began."""
    mine = [one for one in spans if one.parent is not None and one.parent.span_id == outer.context.span_id]
    return sorted(mine, key=lambda one: (one.start_time or 0, one.name))


def test_a_window_holds_its_stages_which_hold_their_blocks_and_its_commit(tmp_path, spans, exported):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(some_lines(30))
    aged(tmp_path / "in" / "a.txt")
    Desk(tmp_path, lines_through_filter(tmp_path, block_size=10_000, readers=1)).run(observers=[spans])
    told = exported.get_finished_spans()
    (window,) = (one for one in told if one.name == "window" and dict(one.attributes or {})["dagkit.window.id"] == 1)
    assert window.parent is None
    names = [one.name for one in inside(told, window)]
    assert names[-1] == "commit"
    assert {name.partition(" ")[0] for name in names} == {"stage", "commit"}
    blocks = [block for stage in inside(told, window) for block in inside(told, stage)]
    (block,) = blocks
    attributes = dict(block.attributes or {})
    assert block.name == "block"
    assert (attributes["dagkit.operator"], attributes["dagkit.block.start"]) == ("reader", 0)
    assert str(attributes["file.path"]).endswith("in/a.txt")
    for outer, inner in [(window, one) for one in inside(told, window)]:
        assert (outer.start_time or 0) <= (inner.start_time or 0) <= (inner.end_time or 0)
    assert all(dict(one.attributes or {})["dagkit.window.id"] for one in told)
    assert len({one.context.trace_id for one in [window, *inside(told, window), block] if one.context}) == 1


def test_each_window_is_a_trace_of_its_own(tmp_path, spans, exported):
    (tmp_path / "in").mkdir()
    for number in range(6):
        (tmp_path / "in" / f"{number}.txt").write_text(some_lines(5))
        aged(tmp_path / "in" / f"{number}.txt")
    Desk(tmp_path, lines_through_filter(tmp_path, threshold=1)).run(observers=[spans])
    windows = [one for one in exported.get_finished_spans() if one.name == "window"]
    assert len(windows) > 1
    assert len({one.context.trace_id for one in windows if one.context}) == len(windows)


def test_a_window_that_failed_is_reported_as_an_error(spans, exported):
    spans(Resumed("App", 0, 0, promised=False))
    spans(Failed(4, "op", "ValueError: no", again=True))
    (failed,) = exported.get_finished_spans()
    assert (failed.name, failed.status.status_code) == ("window failed", StatusCode.ERROR)
    assert failed.status.description == "ValueError: no"


def test_spans_are_made_if_the_api_is_installed():
    assert [type(observer) for observer in tracing()] == [Spans]
