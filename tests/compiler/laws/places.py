"""Places: threads, hosts, and which operators run near which."""

from dagkit import AffinityRule, AffinityRulesSet, AffinityType, DagContext, Locality, OperatorContext
from tests.compiler.laws.drawing import Laws
from tests.compiler.sketches import sketch

law = Laws()


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
_TWO = f"{_DIAMOND} join>c join>d c>foot d>foot"
_thread("a thread for two diamonds", _TWO)
_thread("a thread for two diamonds but one inner stream", _TWO, _NOT_ALL.format("foot"), but="d")
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
