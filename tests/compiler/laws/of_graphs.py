"""Laws of the graph: names, properties, ports and streams, and the shape. Each case draws on a Dag."""

from dagkit import OperatorContext, PortContext
from tests.compiler.cast import Checked, Lines, Needy, New, Old, Primed, Source, Step, Typed
from tests.compiler.sketches import sketch


class Laws:
    """The cases of some laws: what draws each, and the code and the beginning of each problem, if it breaks a law."""

    def __init__(self):
        self.cases = []

    def reports(self, *expected):
        """Add what a function draws, which breaks a law."""

        def add(draw):
            self.add(draw.__name__.replace("_", " "), draw, *expected)
            return draw

        return add

    def compiles(self, draw):
        """Add what a function draws, which compiles."""
        return self.reports()(draw)

    def add(self, name, draw, *expected):
        self.cases.append((name, draw, expected))

    def sketched(self, name, edges, *expected, **given):
        self.add(name, lambda dag: sketch(edges, dag, **given), *expected)


law = Laws()


# ---- names: they are judged while they are drawn

_FIRST = "are called 's'; the first is at tests/compiler/"
law.add("a name twice", lambda dag: sketch("s", sketch("s", dag)), f"operator-duplicated: two operators {_FIRST}")


@law.reports("operator-reused: one Source is added as 'source' and as 'another'")
def an_operator_under_two_names(dag):
    dag.add_operator("another", sketch("source", dag).operator("source"))


@law.reports("name-malformed: the operator name 'dotted.name' contains a dot")
def a_dot_in_a_name(dag):
    dag.add_operator("dotted.name", Source())


@law.reports("name-missing: a stream has no name")
def a_stream_without_a_name(dag):
    dag.add_stream("", dag.add_operator("source", Source()).out, sketch("s>step", dag).operator("step").two)


@law.reports(f"stream-duplicated: two streams {_FIRST}")
def a_name_of_two_streams(dag):
    sketch("t s>a", dag)
    dag.add_stream("s", dag.operator("t").out, dag.operator("a").two)


# ---- properties


def _checked(given, *expected):
    law.add(f"properties {given}", lambda dag: dag.add_operator("checked", Checked(**given)), *expected)


_BELOW = "property-invalid: checked.{}: input should be greater than or equal to {}"
_checked({"count": 1}, _BELOW.format("count cannot be 1", 2))
_checked({"nested": {"depth": 0}}, _BELOW.format("nested.depth cannot be 0", 1))
_checked({"count": 3, "label": "4"}, "property-invalid: checked is wrong: label must end like the count")
_checked({"count": 3, "label": "a3"})
_checked({"cuont": 3}, "property-unknown: checked has no property 'cuont'")


class Numbered(Step):
    kind = 5


class Unmade(Step):
    def __init__(self):
        pass


_UNMADE = "property-invalid: last: __init__ of Unmade does not call that of its base"
law.sketched("no kind", "s>last", "property-invalid: the kind of last is 5, which is not text", last=Numbered)
law.sketched("a base that is not made", "s>last", _UNMADE, last=Unmade)


# ---- ports and streams

_DRY = "stream-unfed: stream 'dry' has no source"


@law.reports(_DRY)
def a_stream_without_a_source(dag):
    dag.add_stream("dry", None, sketch("s>step", dag).operator("step").two)


@law.reports(_DRY)
def a_stream_without_a_source_is_all_that_feeds_others(dag):
    dag.add_stream("dry", None, sketch("step>next", dag, step=Step).operator("step").one)


@law.reports("operator-unknown: stream 'into' is connected to Step.one, whose operator was never added to the Dag")
def an_operator_that_was_never_added(dag):
    stranger, needy = Step(), sketch("needy>next", dag, needy=Needy).operator("needy")
    dag.add_stream("into", dag.add_operator("source", Source()).out, stranger.one)
    dag.add_stream("on", stranger.out, needy.input)
    dag.set_operator_attribute(stranger, OperatorContext.STATELESS, True)


@law.reports("stream-unread: stream 'lost' has no sink")
def a_stream_without_a_sink(dag):
    dag.add_stream("lost", sketch("s>step", dag).operator("step").out)


@law.reports("port-taken: stream 'a' already has the source a.out; b.out is a second one")
def a_stream_with_two_sources(dag):
    sketch("b a>step", dag).stream("a").set_source(dag.operator("b").out)


@law.reports("port-taken: s.out is already on stream 's'")
def an_output_on_two_streams(dag):
    dag.add_stream("two", sketch("s>step", dag).operator("s").out, dag.operator("step").two)


law.sketched("an input on two streams", "s>step t>step.one", "port-taken: step.one is already on stream 's'")
law.sketched("an output into two inputs of one operator", "s>step s>step")
law.sketched(
    "another type",
    "s>step lines>step.two",
    "port-type-mismatch: stream 'lines' joins lines.lines (Line) to step.two (int)",
    lines=Lines,
)
_HIDDEN = "port-hidden: stream 'hidden' is connected to Old.{}, which New hides with a port of its own"


@law.reports(_HIDDEN.format("input"))
def a_hidden_input_is_connected(dag):
    new = dag.add_operator("new", New())
    dag.add_stream("hidden", dag.add_operator("source", Source()).out, super(New, new).input)


@law.reports(_HIDDEN.format("output"))
def a_hidden_output_is_connected(dag):
    new = sketch("s>new", dag, new=New).operator("new")
    dag.add_stream("hidden", super(New, new).output, dag.add_operator("step", Step()).one)


law.sketched("ports that are declared again are connected", "s>new new>next", new=New)
law.sketched("a base class with its own ports", "s>old", old=Old)
law.sketched("a required input is open", "a>next", "input-unconnected: no stream feeds a.input", a=Needy)
law.sketched("optional inputs are open", "s>step.three")
_UNREAD = "output-unconnected: no stream reads needy.output, which must be connected"
law.sketched("a required output is open", "s>needy", _UNREAD, needy=Needy)
law.sketched("both required ports are connected", "s>needy needy>next", needy=Needy)
_UNTYPED = "port-schema-missing: a.{} needs to know the class of its items, and TUPLE_CLASS is not set"
law.sketched("no schema", "s>a a>next", _UNTYPED.format("input"), _UNTYPED.format("output"), a=Typed)


@law.compiles
def a_port_that_needs_a_schema_has_one_and_the_other_is_open(dag):
    typed = sketch("s>typed", dag, typed=Typed).operator("typed")
    dag.set_input_port_attribute(typed.input, PortContext.TUPLE_CLASS, int)


# ---- the shape

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
