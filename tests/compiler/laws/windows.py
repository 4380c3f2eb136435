"""Windows: when state is saved, and what a failure may do to items."""

from dagkit import OperatorContext, ProcessingMode
from tests.compiler.cast import Source, Step, Whole, WholeSource
from tests.compiler.laws.drawing import Laws
from tests.compiler.sketches import fed, followed, sketch

law = Laws()


def _saved(checkpoint, window, operator, *expected):
    def draw(dag):
        if isinstance(operator, Source):
            followed(dag, dag.add_operator("op", operator))
        else:
            fed(dag, "op", operator)
        dag.set_operator_attribute(operator, OperatorContext.CHECKPOINT_WINDOW_COUNT, checkpoint)
        dag.set_operator_attribute(operator, OperatorContext.APPLICATION_WINDOW_COUNT, window)

    law.add(f"{type(operator).__name__} saved every {checkpoint} windows of {window}", draw, *expected)


for _count in (15, 45):
    _saved(
        _count,
        30,
        WholeSource(),
        "checkpoint-misaligned: op cannot be saved inside an application window, but its "
        f"CHECKPOINT_WINDOW_COUNT {_count} is not a multiple of its APPLICATION_WINDOW_COUNT 30",
    )
for _count in (15, 30):
    _saved(
        _count,
        30,
        Whole(),
        "window-divided: op cannot be saved inside an application window, its APPLICATION_WINDOW_COUNT is 30, "
        "and every streaming window begins with the state saved at the end of the last",
    )
_saved(30, 30, WholeSource())
_saved(1, 1, Whole())
_saved(15, 1, Whole())
_saved(15, 30, Step())


def _modes(upstream, downstream, *expected):
    def draw(dag):
        sketch("s>a a>b", dag)
        for name, mode in (("a", upstream), ("b", downstream)):
            if mode:
                dag.set_operator_attribute(dag.operator(name), OperatorContext.PROCESSING_MODE, ProcessingMode(mode))

    law.add(f"{upstream} before {downstream or 'one without a mode'}", draw, *expected)


def _refused(upstream, downstream):
    told = f"b is {downstream}" if downstream else "b has no PROCESSING_MODE"
    _modes(upstream, downstream, f"mode-mismatch: a is {upstream}, but {told}, and stream 'a' joins them")


_refused("AT_MOST_ONCE", "AT_LEAST_ONCE")
_refused("AT_MOST_ONCE", "EXACTLY_ONCE")
_refused("EXACTLY_ONCE", None)
_refused("EXACTLY_ONCE", "AT_LEAST_ONCE")
_refused("EXACTLY_ONCE", "EXACTLY_ONCE")
for _mode in ("AT_LEAST_ONCE", "AT_MOST_ONCE", "EXACTLY_ONCE", None):
    _modes("AT_LEAST_ONCE", _mode)
_modes("AT_MOST_ONCE", "AT_MOST_ONCE")
_modes("AT_MOST_ONCE", None)
_modes("EXACTLY_ONCE", "AT_MOST_ONCE")


@law.compiles
def a_loop_that_may_lose_items(dag):
    delay = sketch("s>c c>~d ~d>c", dag).operator("d")
    dag.set_operator_attribute(delay, OperatorContext.PROCESSING_MODE, ProcessingMode.AT_MOST_ONCE)


class Closing(Step):
    kind = "laws.closing/1"
    uses_watermark = True


class TimedSource(Source):
    kind = "laws.timed-source/1"

    @property
    def estimates_watermark(self) -> bool:
        return True


_MISSING = "watermark-missing: op acts on watermarks, and no operator above it estimates one"


@law.reports(_MISSING)
def watermarks_without_a_source(dag):
    fed(dag, "op", Closing())


@law.reports(_MISSING)
def a_source_of_watermarks_beside_it(dag):
    fed(dag, "op", Closing())
    followed(dag, dag.add_operator("timed", TimedSource()))


@law.compiles
def a_source_of_watermarks_above_it(dag):
    followed(dag, dag.add_operator("timed", TimedSource()))
    dag.add_stream("on", dag.operator("next").out, dag.add_operator("closing", Closing()).one)
