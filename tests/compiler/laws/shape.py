"""The shape: roots, loops, delays, and what nothing reaches."""

from dagkit import OperatorContext
from tests.compiler.cast import Primed, Step
from tests.compiler.laws.drawing import Laws
from tests.compiler.sketches import sketch

law = Laws()
law.sketched("nothing at all", "", "application-empty: Dag has no operators")
_NO_ROOT = "root-not-input: nothing feeds step, and Step is not an InputOperator"
law.sketched("a root that is no input operator", "step", _NO_ROOT, step=Step)
law.sketched("a root that is no input operator feeds others", "step>next", _NO_ROOT, step=Step)
_FED = "root-fed: stream 's' feeds {}.input"
law.sketched(
    "an input operator that is fed", "s>p p>next", f"{_FED.format('p')}, and Primed is an InputOperator", p=Primed
)
law.sketched("two of them by one stream", "s>a s>b", _FED.format("a"), _FED.format("b"), a=Primed, b=Primed)
law.sketched("an input operator that a delay feeds", "p>~d ~d>p", "root-fed: stream 'd' feeds p.input", p=Primed)
law.sketched("an input operator whose input stays open", "p>next", p=Primed)

_UNREACHED = "operator-unreached: no input operator leads to"
_LOOP = "loop-undelayed: the operators {} form a loop without a delay"
_MISPLACED = "delay-misplaced: d leads to c, which does not lead back to d"
law.sketched("a loop that no root leads to", "step>~delay ~delay>step", f"{_UNREACHED} step", f"{_UNREACHED} delay")
law.sketched("a loop of two", "s>a a>b b>a", _LOOP.format("a > b > a"))
law.sketched("a loop of two that no root leads to leads on", "a>b a>c b>a", _LOOP.format("a > b > a"))
law.sketched("an operator wired to itself", "s>step step>step", _LOOP.format("step > step"))
law.sketched("a delay wired to itself", "~delay>~delay", _LOOP.format("delay > delay"))
_TWO = _LOOP.format("2 > 3 > 4 > 2"), _LOOP.format("7 > 7")
law.sketched("a loop of three and one of one", "s>2 2>3 3>4 4>2 t>7 7>7", *_TWO)
law.sketched("a delay that leads beside its way", "s>a a>b b>c b>~d ~d>c", _MISPLACED)
law.sketched("a delay back to the operator that feeds it", "s>c c>~d ~d>c")
law.sketched("a delay two operators back", "s>b b>c c>~d ~d>b")
law.sketched("loops within loops", "s>b b>c c>d c>~in ~in>b d>~out ~out>c")
law.sketched("two streams side by side in a delayed loop", "s>a a>b a.more>b b>~d ~d>a")


@law.reports("delay-misplaced: d delays by one window, but its APPLICATION_WINDOW_COUNT is 2")
def a_delay_of_two_windows(dag):
    delay = sketch("s>c c>~d ~d>c", dag).operator("d")
    dag.set_operator_attribute(delay, OperatorContext.APPLICATION_WINDOW_COUNT, 2)
