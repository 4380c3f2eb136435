"""Windows: when state is saved, and what a failure may do to items."""

from dagkit import Dag, OperatorContext, ProcessingMode
from dagkit.api.component import Component
from tests.compiler.cast import Source, Step, Whole, WholeSource
from tests.compiler.laws.drawing import Broken, Draw, fed, looped


def _saved(checkpoint: int, window: int, operator: Component, port: str = "input") -> Draw:
    def draw(dag: Dag) -> None:
        if isinstance(operator, Source):
            source, step = dag.add_operator("op", operator), dag.add_operator("step", Step())
            dag.add_stream("on", source.out, step.one)
        else:
            fed(dag, "op", operator, port)
        dag.set_operator_attribute(operator, OperatorContext.CHECKPOINT_WINDOW_COUNT, checkpoint)
        dag.set_operator_attribute(operator, OperatorContext.APPLICATION_WINDOW_COUNT, window)

    draw.__name__ = f"{type(operator).__name__} saved every {checkpoint} windows of {window}"
    return draw


def _modes(upstream: str, downstream: str | None) -> Draw:
    def draw(dag: Dag) -> None:
        a, b = fed(dag, "a", Step(), "one"), dag.add_operator("b", Step())
        dag.add_stream("on", a.out, b.one)
        dag.set_operator_attribute(a, OperatorContext.PROCESSING_MODE, ProcessingMode(upstream))
        if downstream:
            dag.set_operator_attribute(b, OperatorContext.PROCESSING_MODE, ProcessingMode(downstream))

    draw.__name__ = f"{upstream} before {downstream or 'one without a mode'}"
    return draw


def a_loop_that_may_lose_items(dag: Dag) -> None:
    delay = looped(dag)
    dag.set_operator_attribute(delay, OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)


class Closing(Step):
    kind = "laws.closing/1"
    uses_watermark = True


class TimedSource(Source):
    kind = "laws.timed-source/1"

    @property
    def estimates_watermark(self) -> bool:
        return True


def watermarks_without_a_source(dag: Dag) -> None:
    fed(dag, "op", Closing(), "one")


def a_source_of_watermarks_beside_it(dag: Dag) -> None:
    fed(dag, "op", Closing(), "one")
    timed, step = dag.add_operator("timed", TimedSource()), dag.add_operator("step", Step())
    dag.add_stream("times", timed.out, step.one)


def a_source_of_watermarks_above_it(dag: Dag) -> None:
    timed, step = dag.add_operator("timed", TimedSource()), dag.add_operator("step", Step())
    closing = dag.add_operator("closing", Closing())
    dag.add_stream("times", timed.out, step.one)
    dag.add_stream("on", step.out, closing.one)


BROKEN: Broken = [
    (watermarks_without_a_source, ["watermark-missing: op acts on watermarks, and no operator above it estimates one"]),
    (
        a_source_of_watermarks_beside_it,
        ["watermark-missing: op acts on watermarks, and no operator above it estimates one"],
    ),
    *(
        (
            _saved(checkpoint, 30, WholeSource()),
            [
                (
                    "checkpoint-misaligned: op cannot be saved inside an application window, but its "
                    f"CHECKPOINT_WINDOW_COUNT {checkpoint} is not a multiple of its APPLICATION_WINDOW_COUNT 30"
                )
            ],
        )
        for checkpoint in (15, 45)
    ),
    *(
        (
            _saved(checkpoint, 30, Whole()),
            [
                (
                    "window-divided: op cannot be saved inside an application window, its APPLICATION_WINDOW_COUNT is "
                    "30, and every streaming window begins with the state saved at the end of the last"
                )
            ],
        )
        for checkpoint in (15, 30)
    ),
    (
        _modes("AT_MOST_ONCE", "AT_LEAST_ONCE"),
        ["mode-mismatch: a is AT_MOST_ONCE, but b is AT_LEAST_ONCE, and stream 'on' joins them"],
    ),
    (
        _modes("AT_MOST_ONCE", "EXACTLY_ONCE"),
        ["mode-mismatch: a is AT_MOST_ONCE, but b is EXACTLY_ONCE, and stream 'on' joins them"],
    ),
    (
        _modes("EXACTLY_ONCE", None),
        ["mode-mismatch: a is EXACTLY_ONCE, but b has no PROCESSING_MODE, and stream 'on' joins them"],
    ),
    (
        _modes("EXACTLY_ONCE", "AT_LEAST_ONCE"),
        ["mode-mismatch: a is EXACTLY_ONCE, but b is AT_LEAST_ONCE, and stream 'on' joins them"],
    ),
    (
        _modes("EXACTLY_ONCE", "EXACTLY_ONCE"),
        ["mode-mismatch: a is EXACTLY_ONCE, but b is EXACTLY_ONCE, and stream 'on' joins them"],
    ),
]

VALID: list[Draw] = [
    _saved(30, 30, WholeSource()),
    _saved(1, 1, Whole()),
    _saved(15, 1, Whole()),
    _saved(15, 30, Step(), "one"),
    *(_modes("AT_LEAST_ONCE", mode) for mode in ("AT_LEAST_ONCE", "AT_MOST_ONCE", "EXACTLY_ONCE", None)),
    *(_modes("AT_MOST_ONCE", mode) for mode in ("AT_MOST_ONCE", None)),
    _modes("EXACTLY_ONCE", "AT_MOST_ONCE"),
    a_loop_that_may_lose_items,
    a_source_of_watermarks_above_it,
]
