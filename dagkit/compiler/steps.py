"""The steps from an application to its plan, by name. Each intermediate form can be asked for, printed and compared.

drawn     what populate_dag wrote                      Graph
expanded  modules replaced by what they hold           Graph
resolved  properties, attributes and payloads settled  Graph
checked   every law holds, partitions are counted      Graph
fused     cut into stages                              Fused
ordered   as it will run                               Plan
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from dagkit.api.application import FunctionApplication, StreamingApplication
from dagkit.api.configuration import Config
from dagkit.api.dag import Dag
from dagkit.compiler.draw import draw, where_of
from dagkit.compiler.expand import expand
from dagkit.compiler.fuse import Fused, fuse
from dagkit.compiler.infer import infer
from dagkit.compiler.modes import settle_modes
from dagkit.compiler.order import order, running_order
from dagkit.compiler.partition import Partitioning, partition
from dagkit.compiler.resolve import Resolver
from dagkit.compiler.rules import check
from dagkit.errors import ApplicationFaults, Diagnostic, Severity, errors_among
from dagkit.graph import Graph, graph_of
from dagkit.plan.model import Plan

Step = Literal["drawn", "expanded", "resolved", "checked", "fused", "ordered"]
STEPS: tuple[Step, ...] = get_args(Step)

Author = StreamingApplication | Callable[[Dag, Config], None] | Dag
"""What can be compiled: an application, a plain `populate_dag` function, or a Dag that was drawn by hand."""


@dataclass(frozen=True)
class Compilation:
    """What came of compiling: the forms that were reached, in order, and what was told along the way."""

    application: str
    steps: Mapping[Step, Graph | Fused | Plan]
    notes: tuple[Diagnostic, ...] = ()
    partitioned: Mapping[str, Partitioning] = field(default_factory=dict)
    raised: BaseException | None = None
    """What kept the author or a module from drawing to the end."""
    home: str | None = None
    """The module in which the plain class names of settings are looked for first."""
    secrets: Mapping[str, bool] = field(default_factory=dict)
    """The keys of properties whose types are known, and whether their values are secrets by these types."""

    @property
    def graph(self) -> Graph:
        """The graph as far as it got."""
        graphs = [form for form in self.steps.values() if isinstance(form, Graph)]
        return graphs[-1]

    @property
    def plan(self) -> Plan:
        """The plan; only there when compiling went to the last step."""
        plan = self.steps["ordered"]
        assert isinstance(plan, Plan), "the last step makes a plan"
        return plan

    def __repr__(self) -> str:
        reached, held = [*self.steps][-1], f"operators: {len(self.graph.nodes)}, streams: {len(self.graph.streams)}"
        return f"<Compilation of {self.application} as {reached}, {held}>"

    def _repr_mimebundle_(self, **_: Any) -> Mapping[str, str]:
        """The plan as a picture, or the graph as far as it got."""
        return Dag.drawing(self.steps.get("ordered", self.graph)) if Dag.drawing else {"text/plain": repr(self)}

    def _repr_svg_(self) -> str | None:
        return self._repr_mimebundle_().get("image/svg+xml")


def compile_application(
    author: Author, conf: Config | None = None, *, conf_faults: Sequence[Diagnostic] = (), allow_unknown: bool = False
) -> Compilation:
    """The application's plan. Raises `ApplicationFaults` with every fault there is, not the first."""
    return compile_until("ordered", author, conf, conf_faults=conf_faults, allow_unknown=allow_unknown)


def compile_until(
    last: Step,
    author: Author,
    conf: Config | None = None,
    *,
    conf_faults: Sequence[Diagnostic] = (),
    allow_unknown: bool = False,
    forgiving: bool = False,
) -> Compilation:
    """Compile up to a step. Forms before `checked` are given even of a faulty application, faults among the notes.

    Faults keep the later steps from being reached, which raises `ApplicationFaults`. To the forgiving, the forms before
    are given all the same, with every fault among the notes.
    """
    run = _Run(conf or Config(), list(conf_faults), allow_unknown)
    run.draw(author)
    if run.finished and last != "drawn":
        run.expand_and_resolve()
    if run.finished and last not in ("drawn", "expanded", "resolved"):
        run.check()
    wanted = STEPS[: STEPS.index(last) + 1]
    if "checked" in wanted and forgiving and errors_among(run.told):
        wanted = STEPS[: STEPS.index("checked")]
    elif "checked" in wanted:
        run.raise_faults()
        run.lower()
    steps = {step: form for step, form in run.steps.items() if step in wanted}
    notes = _in_order(run.told, run.graph)
    return Compilation(run.application, steps, notes, run.partitioned, run.raised, run.home, run.secrets)


class _Run:
    """One compilation under way: the forms so far, and everything told so far."""

    def __init__(self, conf: Config, told: list[Diagnostic], allow_unknown: bool) -> None:  # noqa: FBT001
        self.conf = conf
        self.told = told
        self.allow_unknown = allow_unknown
        self.steps: dict[Step, Graph | Fused | Plan] = {}
        self.partitioned: Mapping[str, Partitioning] = {}
        self.raised: BaseException | None = None

    def draw(self, author: Author) -> None:
        """Configure the application, let it draw, and freeze what it drew."""
        if isinstance(author, Dag):
            where, dag = None, author
            self.resolver = Resolver(self.conf, None, "Dag", self.told)
        else:
            application = author if isinstance(author, StreamingApplication) else FunctionApplication(populate=author)
            where = where_of(application)
            self.resolver = Resolver(self.conf, application, "", self.told)
            application = self.resolver.configured_application(application, where)
            dag, unfinished, self.raised = draw(application, self.conf)
            self.told += [unfinished] if unfinished else []
        self.application = self.resolver.application
        self.graph, slips = graph_of(dag, self.application, where)
        self.told += slips
        self.steps["drawn"] = self.graph

    @property
    def home(self) -> str | None:
        return self.resolver.keys.home

    @property
    def secrets(self) -> Mapping[str, bool]:
        return self.resolver.keys.met.secrets

    @property
    def finished(self) -> bool:
        """Whether the author and every module drew to the end; half a drawing breaks laws that the whole would keep."""
        return self.raised is None

    def expand_and_resolve(self) -> None:
        self.graph, slips, self.raised = expand(self.graph, self.conf, self.resolver.configured_module)
        self.told += slips
        if not self.finished:
            return
        self.steps["expanded"] = self.graph
        self.graph = self.resolver.resolve(self.graph, allow_unknown=self.allow_unknown)
        self.graph, slips = settle_modes(infer(self.graph))
        self.told += slips
        self.application = self.graph.application
        self.steps["resolved"] = self.graph

    def check(self) -> None:
        """Hold every law against the graph; partitions are counted only where the shape allows it."""
        self.told += check(self.graph)
        if not errors_among(self.told):
            self.partitioned, slips = partition(self.graph, running_order(self.graph))
            self.told += slips
        self.steps["checked"] = self.graph

    def raise_faults(self) -> None:
        if errors_among(self.told):
            raise ApplicationFaults(self.application, _in_order(self.told, self.graph)) from self.raised

    def lower(self) -> None:
        fused = fuse(self.graph, self.partitioned)
        self.steps["fused"] = fused
        self.steps["ordered"] = order(fused)


def _in_order(told: Sequence[Diagnostic], graph: Graph) -> tuple[Diagnostic, ...]:
    """Errors before warnings before advisories, each in the order in which the author wrote what they are about."""
    files = dict.fromkeys(node.where.file for node in graph.nodes)
    rank = {file: index for index, file in enumerate(([graph.where.file] if graph.where else []) + list(files))}

    def position(told: Diagnostic) -> tuple[int, int, str, int]:
        severity = list(Severity).index(told.severity)
        if told.where is None:
            return severity, len(rank) + 1, "", 0
        return severity, rank.get(told.where.file, len(rank)), told.where.file, told.where.line or 0

    return tuple(sorted(dict.fromkeys(told), key=position))
