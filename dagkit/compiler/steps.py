"""The steps from an application to its plan, by name. You can request, print and compare each of its forms.

drawn     as populate_dag wrote it                   Graph
expanded  modules replaced by their operators        Graph
resolved  properties, attributes and payloads set    Graph
checked   all rules applied, partitions counted      Graph
fused     cut into stages                            Fused
ordered   as it will run                             Plan
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import quote

from dagkit.api.application import HOME, FunctionApplication, StreamingApplication
from dagkit.api.attributes import DagContext
from dagkit.api.configuration import Config
from dagkit.api.dag import Dag
from dagkit.compiler.draw import draw, where_of
from dagkit.compiler.expand import expand
from dagkit.compiler.fuse import Fused, fuse
from dagkit.compiler.order import order, running_order
from dagkit.compiler.partition import Partitioning, partition
from dagkit.compiler.resolve import Resolver, infer, settle_modes
from dagkit.compiler.rules import check
from dagkit.compiler.rules.handler_rules import why_it_cannot_run
from dagkit.errors import ApplicationFaults, Diagnostic, Severity, errors_among
from dagkit.graph import Graph, Node, graph_of
from dagkit.plan.model import Plan

Step = Literal["drawn", "expanded", "resolved", "checked", "fused", "ordered"]
STEPS: tuple[Step, ...] = get_args(Step)

Author = StreamingApplication | Callable[[Dag, Config], None] | Dag
"""What can be compiled: an application, a plain `populate_dag` function, or a Dag."""


@dataclass(frozen=True)
class Compilation:
    """The result of compiling: the forms that were reached, in order, and the diagnostics."""

    application: str
    steps: Mapping[Step, Graph | Fused | Plan]
    notes: tuple[Diagnostic, ...] = ()
    partitioned: Mapping[str, Partitioning] = field(default_factory=dict)
    raised: BaseException | None = None
    """The exception that ended the `populate_dag` of the application or of a module."""
    home: str | None = None
    """The module in which class names without a module are looked up first."""
    secrets: Mapping[str, bool] = field(default_factory=dict)
    """The keys of properties whose types are known, and whether the type makes the value a secret."""
    conf: Config = field(default_factory=Config, repr=False)
    """The configuration that was applied."""

    @property
    def graph(self) -> Graph:
        """The last graph that was reached."""
        graphs = [form for form in self.steps.values() if isinstance(form, Graph)]
        return graphs[-1]

    def node(self, operator: str) -> Node | None:
        """The operator of this name in that graph."""
        return self.graph.by_name.get(operator)

    @property
    def plan(self) -> Plan:
        """The plan. Compiling must have reached the last step."""
        plan = self.steps["ordered"]
        assert isinstance(plan, Plan), "the last step makes a plan"
        return plan

    def check_it_can_run(self) -> None:
        """Raise `ApplicationFaults` if an operator is not written yet, so that it can only be planned."""
        faults = why_it_cannot_run(self.graph)
        if faults:
            raise ApplicationFaults(self.application, faults)

    def __repr__(self) -> str:
        reached, held = [*self.steps][-1], f"operators: {len(self.graph.nodes)}, streams: {len(self.graph.streams)}"
        return f"<Compilation of {self.application} as {reached}, {held}>"

    def _repr_mimebundle_(self, **_: Any) -> Mapping[str, str]:
        """The plan as a picture, or else the last graph that was reached."""
        return Dag.drawing(self.steps.get("ordered", self.graph)) if Dag.drawing else {"text/plain": repr(self)}

    def _repr_svg_(self) -> str | None:
        return self._repr_mimebundle_().get("image/svg+xml")


def compile_application(
    author: Author, conf: Config | None = None, *, conf_faults: Sequence[Diagnostic] = (), allow_unknown: bool = False
) -> Compilation:
    """Compile to a plan. Raise `ApplicationFaults` with every fault, not only the first."""
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
    """Compile up to a step. A faulty application has the forms before `checked` too, with the faults in the notes.

    If a fault prevents a later step, raise `ApplicationFaults`; if `forgiving`, return the forms before `checked`.
    """
    run = _Run(conf or Config(), list(conf_faults), allow_unknown)
    run.draw(author)
    if run.finished and last != "drawn":
        run.expand_and_resolve()
    if run.finished and last not in ("drawn", "expanded", "resolved"):
        run.check()
    wanted = STEPS[: STEPS.index(last) + 1]
    if "checked" in wanted and forgiving and errors_among(run.diagnostics):
        wanted = STEPS[: STEPS.index("checked")]
    elif "checked" in wanted:
        run.raise_faults()
        run.lower()
    steps = {step: form for step, form in run.steps.items() if step in wanted}
    notes = _in_order(run.diagnostics, run.graph)
    return Compilation(run.application, steps, notes, run.partitioned, run.raised, run.home, run.secrets, run.conf)


class _Run:
    """One compilation: the forms and the diagnostics so far."""

    def __init__(self, conf: Config, diagnostics: list[Diagnostic], allow_unknown: bool) -> None:  # noqa: FBT001
        self.conf = conf
        self.diagnostics = diagnostics
        self.allow_unknown = allow_unknown
        self.steps: dict[Step, Graph | Fused | Plan] = {}
        self.partitioned: Mapping[str, Partitioning] = {}
        self.raised: BaseException | None = None

    def draw(self, author: Author) -> None:
        """Configure the application, run its `populate_dag`, and freeze the Dag."""
        if isinstance(author, Dag):
            where, dag = None, author
            self.resolver = Resolver(self.conf, None, "Dag", self.diagnostics)
        else:
            application = author if isinstance(author, StreamingApplication) else FunctionApplication(populate=author)
            where = where_of(application)
            self.resolver = Resolver(self.conf, application, "", self.diagnostics)
            application = self.resolver.configured_application(application, where)
            dag, unfinished, self.raised = draw(application, self.conf)
            self.diagnostics += [unfinished] if unfinished else []
        self.application = self.resolver.application
        self.graph, faults = graph_of(dag, self.application, where)
        self.diagnostics += faults
        self.steps["drawn"] = self.graph

    @property
    def home(self) -> str | None:
        keys = self.resolver.keys
        return keys.home

    @property
    def secrets(self) -> Mapping[str, bool]:
        keys = self.resolver.keys
        return keys.usage.secrets

    @property
    def finished(self) -> bool:
        """Whether every `populate_dag` ran to its end. Rules must not judge a half-finished graph."""
        return self.raised is None

    def expand_and_resolve(self) -> None:
        self.graph, faults, self.raised = expand(self.graph, self.conf, self.resolver.configured_module)
        self.diagnostics += faults
        if not self.finished:
            return
        self.steps["expanded"] = self.graph
        self.graph = self.resolver.resolve(self.graph, allow_unknown=self.allow_unknown)
        self.graph, faults = settle_modes(infer(self.graph))
        self.diagnostics += faults
        # Configuration may have set APPLICATION_NAME.
        self.application = self.graph.application
        self.steps["resolved"] = self.graph

    def check(self) -> None:
        """Apply every rule to the graph. Partition it only if there are no errors."""
        self.diagnostics += check(self.graph)
        if not errors_among(self.diagnostics):
            self.partitioned, faults = partition(self.graph, running_order(self.graph))
            self.diagnostics += faults
        self.steps["checked"] = self.graph

    def raise_faults(self) -> None:
        if errors_among(self.diagnostics):
            raise ApplicationFaults(self.application, _in_order(self.diagnostics, self.graph)) from self.raised

    def lower(self) -> None:
        fused = fuse(self.graph, self.partitioned)
        self.steps["fused"] = fused
        self.steps["ordered"] = order(fused)


def _in_order(diagnostics: Sequence[Diagnostic], graph: Graph) -> tuple[Diagnostic, ...]:
    """Errors, then warnings, then advisories, each in the order of the lines that they are about.

    A file that cannot be read comes first: what it does not set may be the cause of other faults.
    """
    files = dict.fromkeys(node.where.file for node in graph.nodes)
    rank = {file: index for index, file in enumerate(([graph.where.file] if graph.where else []) + list(files))}

    def position(diagnostic: Diagnostic) -> tuple[int, int, str, int]:
        severity = list(Severity).index(diagnostic.severity)
        if diagnostic.where is not None and diagnostic.code == "file-unreadable":
            return severity, -1, diagnostic.where.file, diagnostic.where.line or 0
        if diagnostic.where is None:
            return severity, len(rank) + 1, "", 0
        return severity, rank.get(diagnostic.where.file, len(rank)), diagnostic.where.file, diagnostic.where.line or 0

    return tuple(sorted(dict.fromkeys(diagnostics), key=position))


def application_path(compilation: Compilation) -> str:
    """The application's folder: its APPLICATION_PATH, else one named after it below `HOME`."""
    path = compilation.graph.application_value(DagContext.APPLICATION_PATH)
    return str(path or Path(HOME) / quote(compilation.application, safe=" "))
