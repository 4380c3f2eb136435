"""The shape: roots, loops, delays, and what nothing reaches."""

from dagkit import OperatorContext
from tests.compiler.cast import Delay, Primed, Source
from tests.compiler.laws.drawing import Laws
from tests.compiler.sketches import fed, followed, sketch, steps

law = Laws()
law.add("nothing at all", lambda dag: None, "application-empty: Dag has no operators")
_NO_ROOT = "root-not-input: nothing feeds step, and Step is not an InputOperator"


@law.reports(_NO_ROOT)
def a_root_that_is_no_input_operator(dag):
    steps(dag, ["step"])


@law.reports(_NO_ROOT)
def a_root_that_is_no_input_operator_feeds_others(dag):
    followed(dag, *steps(dag, ["step"]))


@law.reports("root-fed: stream 'into primed' feeds primed.input, and Primed is an InputOperator")
def an_input_operator_that_is_fed(dag):
    followed(dag, fed(dag, "primed", Primed()))


@law.reports("root-fed: stream 's' feeds a.input", "root-fed: stream 's' feeds b.input")
def input_operators_that_are_fed_by_one_stream(dag):
    source, a, b = dag.add_operator("s", Source()), dag.add_operator("a", Primed()), dag.add_operator("b", Primed())
    dag.add_stream("s", source.out, a.input, b.input)


@law.reports("root-fed: stream 'back' feeds primed.input")
def an_input_operator_that_a_delay_feeds(dag):
    primed, delay = dag.add_operator("primed", Primed()), dag.add_operator("delay", Delay())
    dag.add_stream("out", primed.out, delay.input)
    dag.add_stream("back", delay.output, primed.input)


@law.compiles
def an_input_operator_whose_input_stays_open(dag):
    followed(dag, dag.add_operator("primed", Primed()))


_UNREACHED = "operator-unreached: no input operator leads to"
_LOOP = "loop-undelayed: the operators {} form a loop without a delay"
_MISPLACED = "delay-misplaced: d leads to c, which does not lead back to d"
law.sketched("a loop that no root leads to", "step>~delay ~delay>step", f"{_UNREACHED} step", f"{_UNREACHED} delay")
law.sketched("a loop of two", "s>a a>b b>a", _LOOP.format("a > b > a"))
law.sketched("a loop of two that no root leads to leads on", "a>b a>c b>a", _LOOP.format("a > b > a"))
law.sketched("an operator wired to itself", "s>step step>step", _LOOP.format("step > step"))
law.sketched("a delay wired to itself", "~delay>~delay", _LOOP.format("delay > delay"))
law.sketched(
    "a loop of three and one of one", "s>2 2>3 3>4 4>2 t>7 7>7", _LOOP.format("2 > 3 > 4 > 2"), _LOOP.format("7 > 7")
)
law.sketched("a delay that leads beside its way", "s>a a>b b>c b>~d ~d>c", _MISPLACED)
law.sketched("a delay back to the operator that feeds it", "s>c c>~d ~d>c")
law.sketched("a delay two operators back", "s>b b>c c>~d ~d>b")
law.sketched("loops within loops", "s>b b>c c>d c>~in ~in>b d>~out ~out>c")


@law.reports("delay-misplaced: d delays by one window, but its APPLICATION_WINDOW_COUNT is 2")
def a_delay_of_two_windows(dag):
    delay = sketch("s>c c>~d ~d>c", dag).operator("d")
    dag.set_operator_attribute(delay, OperatorContext.APPLICATION_WINDOW_COUNT, 2)


@law.compiles
def two_streams_side_by_side_in_a_delayed_loop(dag):
    first, (second,), delay = fed(dag, "first"), steps(dag, ["second"]), dag.add_operator("delay", Delay())
    dag.add_stream("a", first.out, second.one)
    dag.add_stream("b", first.more, second.two)
    dag.add_stream("c", second.out, delay.input)
    dag.add_stream("d", delay.output, first.two)
