"""The shape: roots, loops, delays, and what nothing reaches."""

from dagkit import Dag, OperatorContext
from tests.compiler.cast import Delay, Primed, Source, Step
from tests.compiler.laws.drawing import Broken, Draw, fed, looped


def nothing_at_all(dag: Dag) -> None:
    pass


def a_root_that_is_no_input_operator(dag: Dag) -> None:
    dag.add_operator("step", Step())


def a_root_that_is_no_input_operator_feeds_others(dag: Dag) -> None:
    step = dag.add_operator("step", Step())
    dag.add_stream("out", step.out, dag.add_operator("next", Step()).one)


def an_input_operator_that_is_fed(dag: Dag) -> None:
    primed = fed(dag, "primed", Primed())
    dag.add_stream("out", primed.out, dag.add_operator("next", Step()).one)


def input_operators_that_are_fed_by_one_stream(dag: Dag) -> None:
    source, a, b = dag.add_operator("s", Source()), dag.add_operator("a", Primed()), dag.add_operator("b", Primed())
    dag.add_stream("s", source.out, a.input, b.input)


def an_input_operator_that_a_delay_feeds(dag: Dag) -> None:
    primed, delay = dag.add_operator("primed", Primed()), dag.add_operator("delay", Delay())
    dag.add_stream("out", primed.out, delay.input)
    dag.add_stream("back", delay.output, primed.input)


def an_input_operator_whose_input_stays_open(dag: Dag) -> None:
    primed = dag.add_operator("primed", Primed())
    dag.add_stream("out", primed.out, dag.add_operator("next", Step()).one)


def a_loop_that_no_root_leads_to(dag: Dag) -> None:
    step, delay = dag.add_operator("step", Step()), dag.add_operator("delay", Delay())
    dag.add_stream("out", step.out, delay.input)
    dag.add_stream("back", delay.output, step.one)


def a_loop_of_two(dag: Dag) -> None:
    a = fed(dag, "a", Step(), "one")
    b = dag.add_operator("b", Step())
    dag.add_stream("on", a.out, b.one)
    dag.add_stream("back", b.out, a.two)


def a_loop_of_two_that_no_root_leads_to_leads_on(dag: Dag) -> None:
    a, b = dag.add_operator("a", Step()), dag.add_operator("b", Step())
    dag.add_stream("on", a.out, b.one, dag.add_operator("c", Step()).one)
    dag.add_stream("back", b.out, a.one)


def an_operator_wired_to_itself(dag: Dag) -> None:
    step = fed(dag, "step", Step(), "one")
    dag.add_stream("back", step.out, step.two)


def a_delay_wired_to_itself(dag: Dag) -> None:
    delay = dag.add_operator("delay", Delay())
    dag.add_stream("back", delay.output, delay.input)


def a_loop_of_three_and_one_of_one(dag: Dag) -> None:
    two = fed(dag, "2", Step(), "one")
    three, four = dag.add_operator("3", Step()), dag.add_operator("4", Step())
    dag.add_stream("2>3", two.out, three.one)
    dag.add_stream("3>4", three.out, four.one)
    dag.add_stream("4>2", four.out, two.two)
    seven = fed(dag, "7", Step(), "one")
    dag.add_stream("7>7", seven.out, seven.two)


def a_delay_that_leads_beside_its_way(dag: Dag) -> None:
    b = fed(dag, "b", Step(), "one")
    c, d, delay = dag.add_operator("c", Step()), dag.add_operator("d", Step()), dag.add_operator("delay", Delay())
    dag.add_stream("b>c", b.out, c.one)
    dag.add_stream("c>d", c.out, d.one)
    dag.add_stream("c>delay", c.more, delay.input)
    dag.add_stream("delay>d", delay.output, d.two)


def a_delay_of_two_windows(dag: Dag) -> None:
    dag.set_operator_attribute(looped(dag), OperatorContext.APPLICATION_WINDOW_COUNT, 2)


def a_delay_back_into_its_own_feeder(dag: Dag) -> None:
    looped(dag)


def a_delay_two_operators_back(dag: Dag) -> None:
    b = fed(dag, "b", Step(), "one")
    c, delay = dag.add_operator("c", Step()), dag.add_operator("delay", Delay())
    dag.add_stream("b>c", b.out, c.one)
    dag.add_stream("c>delay", c.out, delay.input)
    dag.add_stream("delay>b", delay.output, b.two)


def loops_within_loops(dag: Dag) -> None:
    b = fed(dag, "b", Step(), "one")
    c, d = dag.add_operator("c", Step()), dag.add_operator("d", Step())
    inner, outer = dag.add_operator("delay", Delay()), dag.add_operator("delay2", Delay())
    dag.add_stream("b>c", b.out, c.one)
    dag.add_stream("c>d", c.out, d.one)
    dag.add_stream("c>delay", c.more, inner.input)
    dag.add_stream("delay>b", inner.output, b.two)
    dag.add_stream("d>delay2", d.out, outer.input)
    dag.add_stream("delay2>c", outer.output, c.two)


def two_streams_side_by_side_in_a_delayed_loop(dag: Dag) -> None:
    first, second = fed(dag, "first", Step(), "one"), dag.add_operator("second", Step())
    delay = dag.add_operator("delay", Delay())
    dag.add_stream("a", first.out, second.one)
    dag.add_stream("b", first.more, second.two)
    dag.add_stream("c", second.out, delay.input)
    dag.add_stream("d", delay.output, first.two)


BROKEN: Broken = [
    (nothing_at_all, ["application-empty: Dag has no operators"]),
    (a_root_that_is_no_input_operator, ["root-not-input: nothing feeds step, and Step is not an InputOperator"]),
    (
        a_root_that_is_no_input_operator_feeds_others,
        ["root-not-input: nothing feeds step, and Step is not an InputOperator"],
    ),
    (
        an_input_operator_that_is_fed,
        ["root-fed: stream 'into primed' feeds primed.input, and Primed is an InputOperator"],
    ),
    (
        input_operators_that_are_fed_by_one_stream,
        ["root-fed: stream 's' feeds a.input", "root-fed: stream 's' feeds b.input"],
    ),
    (an_input_operator_that_a_delay_feeds, ["root-fed: stream 'back' feeds primed.input"]),
    (
        a_loop_that_no_root_leads_to,
        ["operator-unreached: no input operator leads to step", "operator-unreached: no input operator leads to delay"],
    ),
    (a_loop_of_two, ["loop-undelayed: the operators a > b > a form a loop without a delay"]),
    (
        a_loop_of_two_that_no_root_leads_to_leads_on,
        ["loop-undelayed: the operators a > b > a form a loop without a delay"],
    ),
    (an_operator_wired_to_itself, ["loop-undelayed: the operators step > step form a loop without a delay"]),
    (a_delay_wired_to_itself, ["loop-undelayed: the operators delay > delay form a loop without a delay"]),
    (
        a_loop_of_three_and_one_of_one,
        [
            "loop-undelayed: the operators 2 > 3 > 4 > 2 form a loop without a delay",
            "loop-undelayed: the operators 7 > 7 form a loop without a delay",
        ],
    ),
    (a_delay_that_leads_beside_its_way, ["delay-misplaced: delay leads to d, which does not lead back to delay"]),
    (a_delay_of_two_windows, ["delay-misplaced: delay delays by one window, but its APPLICATION_WINDOW_COUNT is 2"]),
]

VALID: list[Draw] = [
    an_input_operator_whose_input_stays_open,
    a_delay_back_into_its_own_feeder,
    a_delay_two_operators_back,
    loops_within_loops,
    two_streams_side_by_side_in_a_delayed_loop,
]
