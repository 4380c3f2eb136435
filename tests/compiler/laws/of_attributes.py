"""Laws of attributes: what bears them, partitions, windows and modes, and where operators run."""

import threading

from dagkit import DagContext, Locality, OperatorContext, PortContext, ProcessingMode, StatelessPartitioner
from dagkit.api.affinity import AffinityRule, AffinityRulesSet, AffinityType
from tests.compiler.cast import Deal, Dealer, Parity, Settled, SettledDealer, Source, Step, Whole, WholeSource
from tests.compiler.laws.of_graphs import law
from tests.compiler.sketches import sketch

# ---- what bears attributes, and what can be sent to workers


class _Locked(Parity):
    def __init__(self):
        self.lock = threading.Lock()


class _LockedDeal(Deal):
    def __init__(self):
        super().__init__(1)
        self.lock = threading.Lock()


class _Incomparable:
    def __eq__(self, other):
        raise RuntimeError

    __hash__ = None


def _set(bearer, attribute, value, *expected):
    """Add the case that an attribute is set on the application, on `step` or on a port of it."""

    def draw(dag):
        step = sketch("s>step step>next" if "read" in bearer else "s>step", dag).operator("step")
        match bearer.split():
            case ["application"]:
                dag.set_attribute(attribute, value)
            case ["operator"]:
                dag.set_operator_attribute(step, attribute, value)
            case ["input", port]:
                dag.set_input_port_attribute(getattr(step, port), attribute, value)
            case ["output", *_]:
                dag.set_output_port_attribute(step.out, attribute, value)
            case ["unifier"]:
                dag.set_unifier_attribute(step.out, attribute, value)

    law.add(f"{attribute.qualified} of an {bearer}", draw, *expected)


_UNSENT = "attribute-unpicklable: {} cannot be sent"
_set("application", DagContext.STRING_CODECS, {int: _Locked().from_bytes}, _UNSENT.format("STRING_CODECS of Dag"))
_set("operator", OperatorContext.PARTITIONER, _LockedDeal(), _UNSENT.format("PARTITIONER of step"))
_set("input one", PortContext.STREAM_CODEC, _Locked(), _UNSENT.format("STREAM_CODEC of step.one"))
_set("output read", PortContext.STREAM_CODEC, _Locked(), _UNSENT.format("STREAM_CODEC of step.out"))
_OFTEN = "attribute-invalid: RECOVERY_ATTEMPTS of step is 'often': it must be a whole number"
_set("operator", OperatorContext.RECOVERY_ATTEMPTS, "often", _OFTEN)

_MODE = "attribute-invalid: PROCESSING_MODE of {} is"
_set("operator", OperatorContext.PROCESSING_MODE, _Incomparable(), _MODE.format("step"))
_set("application", OperatorContext.PROCESSING_MODE, _Incomparable(), _MODE.format("Dag"))

_OPEN = "attribute-stranded: {} is set on step.{}, which no stream uses"
_set("input two", PortContext.PARTITION_PARALLEL, True, _OPEN.format("PARTITION_PARALLEL", "two"))
_set("output", PortContext.UNIFIER_LIMIT, 2, _OPEN.format("UNIFIER_LIMIT", "out"))
_set("unifier", OperatorContext.TIMEOUT_WINDOW_COUNT, 2, _OPEN.format("TIMEOUT_WINDOW_COUNT", "out"))

_WRONG = "attribute-misplaced: {} is set on {}, but it belongs to {}"
_QUEUE, _WINDOW = PortContext.QUEUE_CAPACITY, DagContext.STREAMING_WINDOW_SIZE_MILLIS
_set("operator", _QUEUE, 2, _WRONG.format("PortContext.QUEUE_CAPACITY", "an operator", "a port"))
_set("operator", _WINDOW, 2, _WRONG.format("DAGContext.STREAMING_WINDOW_SIZE_MILLIS", "an operator", "the application"))
_set("input one", OperatorContext.STATELESS, True, _WRONG.format("OperatorContext.STATELESS", "a port", "an operator"))
_set("application", _QUEUE, 2, _WRONG.format("PortContext.QUEUE_CAPACITY", "the application", "a port"))
_set("application", OperatorContext.TIMEOUT_WINDOW_COUNT, 2)


# ---- partitions

_FORBIDDEN = "partition-forbidden: settled may not be partitioned, but "


def _settled(name, attribute, value, *expected, settled=Settled):
    """Add the case that `settled`, which may not be partitioned, has an attribute for mirrors or a partitioner."""

    def draw(dag):
        operator = sketch("s>settled", dag, settled=settled).operator("settled")
        if attribute is PortContext.PARTITION_PARALLEL:
            dag.set_input_port_attribute(operator.input, attribute, value)
        else:
            dag.set_operator_attribute(operator, attribute, value)

    law.add(f"an unpartitionable operator {name}", draw, *expected)


_MIRROR, _PARTITIONER = PortContext.PARTITION_PARALLEL, OperatorContext.PARTITIONER
_HAS = _FORBIDDEN + "it has a PARTITIONER"
_settled("mirrors", _MIRROR, True, _FORBIDDEN + "PARTITION_PARALLEL is set on settled.input")
_settled("is told not to mirror", _MIRROR, False)
_settled("has a partitioner", _PARTITIONER, StatelessPartitioner(2), _HAS)
_settled("is told to have none, though it is one", _PARTITIONER, None, settled=SettledDealer)
_OWN = _FORBIDDEN + "it is its own Partitioner"
law.sketched("an unpartitionable operator partitions itself", "s>settled", _OWN, settled=SettledDealer)
law.sketched("an operator that partitions itself", "s>dealer", dealer=Dealer)


@law.reports(_HAS)
def an_unpartitionable_operator_gets_the_partitioner_of_all(dag):
    sketch("s>settled", dag, settled=Settled).set_attribute(OperatorContext.PARTITIONER, StatelessPartitioner(2))


_UNRELATED = "parallel-unrelated: {} mirrors the partitions of a and of b, which do not follow one operator"
law.sketched("parallel inputs from unrelated operators", "s>a t>b a=>step b=>step", _UNRELATED.format("step"))
law.sketched("one parallel input and a plain one", "s>a t>b a=>step b>step")
law.sketched("feeders that mirror one operator", "s>head*2 head=>a head=>b a=>foot b=>foot")
law.sketched("feeders of one ancestor", "s>head*2 head>a head>b a=>foot b=>foot", _UNRELATED.format("foot"))
law.sketched("two parallel streams between the same pair", "s>head head=>foot head.more=>foot")


def _dealt(count, *expected):
    def draw(dag):
        mirror = sketch("s>head*3 head=>mirror", dag).operator("mirror")
        dag.set_operator_attribute(mirror, OperatorContext.PARTITIONER, Deal(count))

    law.add(f"a mirror of three that makes {count}", draw, *expected)


_COUNT = "parallel-count-mismatch: mirror mirrors the 3 partitions of head, but its partitioner makes"
_dealt(4, f"{_COUNT} 4: some would get nothing")
_dealt(2, f"{_COUNT} 2: the items of some would be lost")
_dealt(3)


@law.reports("parallel-rekeyed: mirror.one is PARTITION_PARALLEL, so its STREAM_CODEC cannot route anything")
def a_mirrors_input_has_a_codec(dag):
    inlet = sketch("s>head head=>mirror", dag).operator("mirror").one
    dag.set_input_port_attribute(inlet, PortContext.STREAM_CODEC, Parity())


@law.reports("partition-invalid: the Deal of step returned no partitions")
def a_partitioner_makes_none(dag):
    step = sketch("s>step", dag).operator("step")
    dag.set_operator_attribute(step, OperatorContext.PARTITIONER, Deal(0))


# ---- windows


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


# ---- places


def _thread(name, edges, *expected, but=""):
    """Add a sketch whose streams are THREAD_LOCAL, but those of some operators."""

    def draw(dag):
        sketch(edges, dag)
        for operator in {edge.partition(">")[0].strip("~") for edge in edges.split()} - set(but):
            dag.stream(operator).set_locality("THREAD_LOCAL")

    law.add(name, draw, *(f"locality-invalid: {problem}" for problem in expected))


_DIAMOND = "s>a s>b a>join b>join"
_CANNOT = "{} cannot share a thread with what feeds it: "
_ROOTS = _CANNOT.format("join") + "its input streams do not begin at one operator"
_NOT_ALL = _CANNOT + "it has several input streams, and not all of them are THREAD_LOCAL"
_thread("a thread with two roots", "a>join b>join", _ROOTS)
_thread("a thread with one input of two", "a>join b>join", _NOT_ALL.format("join"), but="b")
_thread("no thread for two inputs", "a>join b>join", but="ab")
_thread("a thread for a chain", "a>b b>c")
_thread("a thread for a diamond", _DIAMOND)
_thread("a thread for three sides of a diamond", _DIAMOND, _NOT_ALL.format("join"), but="b")
_thread("a thread that begins at a diamond's arms", _DIAMOND, _ROOTS, but="s")
_TWO_DIAMONDS = f"{_DIAMOND} join>c join>d c>foot d>foot"
_thread("a thread for two diamonds", _TWO_DIAMONDS)
_thread("a thread for two diamonds but one inner stream", _TWO_DIAMONDS, _NOT_ALL.format("foot"), but="d")
_thread("a thread around a delay", "s>c c>~d ~d>c", _CANNOT.format("c") + "one of its inputs comes", but="s")


def _row(name, *expected, rules=(), locality=None, hosts=()):
    """Add O1 > O2 > O3 > O4 and O5, with a locality between O2 and O3, and hosts for them."""

    def draw(dag):
        sketch("O1>O2 O2>O3 O3>O4 O3>O5", dag).stream("O2").set_locality(locality)
        for operator, host in zip(("O2", "O3"), hosts, strict=False):
            dag.set_operator_attribute(dag.operator(operator), OperatorContext.LOCALITY_HOST, host)
        if rules:
            dag.set_attribute(DagContext.AFFINITY_RULES_SET, AffinityRulesSet(affinity_rules=rules))

    law.add(name, draw, *expected)


def _rule(kind, operators, locality="NODE_LOCAL", *, relaxed=False):
    names = tuple(operators.split())
    return AffinityRule(type=kind, operators=names, locality=Locality(locality), relax_locality=relaxed)


_TOGETHER, _APART = AffinityType.AFFINITY, AffinityType.ANTI_AFFINITY
_2_AND_3 = _rule(_APART, "O2 O3")
_BOTH = (_rule(_TOGETHER, "O1 O3"), _rule(_APART, "O1 O3"))
_THIRD = (_rule(_TOGETHER, "O3 O4"), _rule(_TOGETHER, "O4 O5"), _rule(_APART, "O3 O5"))
_TORN = "affinity-conflicting: {} must run apart (NODE_LOCAL), but streams or other rules keep them together"
_ONE = ("host1", "host1")
_HOSTS = ("host1", "host2")
_row(
    "joined in one node but on two hosts",
    "affinity-conflicting: O2 and O3 are joined NODE_LOCAL by stream 'O2', but pinned to different hosts",
    locality="NODE_LOCAL",
    hosts=_HOSTS,
)
_row("on two hosts and free", hosts=_HOSTS)
_row("apart but joined in a container", _TORN.format("O2 and O3"), rules=(_2_AND_3,), locality="CONTAINER_LOCAL")
_row("apart and joined in one rack", rules=(_2_AND_3,), locality="RACK_LOCAL")
_row("apart and together", _TORN.format("O1 and O3"), rules=_BOTH)
_row("apart and together in one rack", rules=(_rule(_TOGETHER, "O1 O3", "RACK_LOCAL"), _BOTH[1]))
_row("apart where possible and together", rules=(_BOTH[0], _rule(_APART, "O1 O3", relaxed=True)))
_row("apart but together through a third", _TORN.format("O3 and O5"), rules=_THIRD)
_row(
    "apart but on one host",
    "affinity-conflicting: O2 and O3 must run apart, but both are pinned to host 'host1'",
    rules=(_2_AND_3,),
    hosts=_ONE,
)
_row(
    "together but on two hosts",
    "affinity-conflicting: O2 and O3 must run together, but are pinned to hosts 'host1' and 'host2'",
    rules=(_rule(_TOGETHER, "O2 O3"),),
    hosts=_HOSTS,
)
_row(
    "one thread but no stream",
    "affinity-conflicting: O1 and O3 must share a thread, but no stream joins them",
    rules=(_rule(_TOGETHER, "O1 O3", "THREAD_LOCAL"),),
)
_row(
    "a rule about an operator that is not there",
    "affinity-invalid: an affinity rule names 'O33'; there is no such operator",
    rules=(_rule(_TOGETHER, "O2 O33"),),
)
_row(
    "a rule with a broken pattern",
    "affinity-invalid: the affinity rule's 'O[' is not a regular expression",
    rules=(AffinityRule(type=_TOGETHER, operator_regex="O["),),
)
_23, FITS_ONE = (AffinityRule(type=_APART, operator_regex=regex) for regex in ("O[23]", "O2"))
_row("a rule by pattern", _TORN.format("O2 and O3"), rules=(_23,), locality="NODE_LOCAL")
_row("a rule whose pattern fits one", rules=(FITS_ONE,), locality="NODE_LOCAL")
