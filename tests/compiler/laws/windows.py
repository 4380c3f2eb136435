"""Windows: when state is saved, and what a failure may do to items."""

from dagkit import OperatorContext, ProcessingMode
from tests.compiler.cast import Source, Step, Whole, WholeSource
from tests.compiler.laws.drawing import Laws
from tests.compiler.sketches import sketch

law = Laws()


def _saved(checkpoint, window, operator, *expected):
    def draw(dag):
        sketch("op>step" if isinstance(operator, Source) else "s>op", dag, op=operator)
        dag.set_operator_attribute(operator, OperatorContext.CHECKPOINT_WINDOW_COUNT, checkpoint)
        dag.set_operator_attribute(operator, OperatorContext.APPLICATION_WINDOW_COUNT, window)

    law.add(f"{type(operator).__name__} saved every {checkpoint} windows of {window}", draw, *expected)


_MISALIGNED = (
    "checkpoint-misaligned: op cannot be saved inside an application window, but its CHECKPOINT_WINDOW_COUNT {} "
    "is not a multiple of its APPLICATION_WINDOW_COUNT 30"
)
_DIVIDED = (
    "window-divided: op cannot be saved inside an application window, its APPLICATION_WINDOW_COUNT is 30, "
    "and every streaming window begins with the state saved at the end of the last"
)
_saved(15, 30, WholeSource(), _MISALIGNED.format(15))
_saved(45, 30, WholeSource(), _MISALIGNED.format(45))
_saved(15, 30, Whole(), _DIVIDED)
_saved(30, 30, Whole(), _DIVIDED)
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
law.sketched("watermarks without a source", "s>op", _MISSING, op=Closing)
law.sketched("a source of watermarks beside it", "s>op timed>step", _MISSING, op=Closing, timed=TimedSource)
law.sketched("a source of watermarks above it", "timed>step step>op", op=Closing, timed=TimedSource)
