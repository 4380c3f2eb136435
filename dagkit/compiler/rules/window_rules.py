"""Laws of windows: when state is saved, and what a failure may do to items."""

from collections.abc import Iterator

from dagkit.api.attributes import OperatorContext, ProcessingMode
from dagkit.api.operators import InputOperator, Operator
from dagkit.api.work import SplittableOperator
from dagkit.errors import Diagnostic, Severity
from dagkit.graph import Graph, Node, Stream


def application_windows_are_kept_whole(graph: Graph) -> Iterator[Diagnostic]:
    """On workers, every streaming window makes new operators from the saved state."""
    for node in graph.nodes:
        window = graph.value(node, OperatorContext.APPLICATION_WINDOW_COUNT)
        divides = _counts(window) and window > 1
        if not node.is_input and divides and not getattr(node.operator, "checkpointable_within_app_window", True):
            yield Diagnostic(
                "window-divided",
                f"{node.name} cannot be saved inside an application window, its APPLICATION_WINDOW_COUNT is {window}, "
                "and every streaming window begins with the state saved at the end of the last",
                "keep what it collects in State(…), and remove checkpointable_within_app_window = False; "
                "or set APPLICATION_WINDOW_COUNT to 1",
                graph.setting(node, OperatorContext.APPLICATION_WINDOW_COUNT).origin.where or node.where,
            )


def checkpoints_fall_between_application_windows(graph: Graph) -> Iterator[Diagnostic]:
    """An input operator that cannot be saved inside an application window is saved only at the end of one."""
    for node in graph.nodes:
        if not node.is_input:
            continue  # `application_windows_are_kept_whole` refuses such windows on workers
        checkpoint = graph.value(node, OperatorContext.CHECKPOINT_WINDOW_COUNT)
        window = graph.value(node, OperatorContext.APPLICATION_WINDOW_COUNT)
        if not _counts(checkpoint, window) or getattr(node.operator, "checkpointable_within_app_window", True):
            continue
        if checkpoint % window != 0:
            yield Diagnostic(
                "checkpoint-misaligned",
                f"{node.name} cannot be saved inside an application window, but its CHECKPOINT_WINDOW_COUNT "
                f"{checkpoint} is not a multiple of its APPLICATION_WINDOW_COUNT {window}",
                f"set CHECKPOINT_WINDOW_COUNT to {window}, or another multiple of it",
                graph.setting(node, OperatorContext.CHECKPOINT_WINDOW_COUNT).origin.where or node.where,
            )


def _counts(*values: object) -> bool:
    """Whether the values are counts. Other values break another law."""
    return all(isinstance(value, int) and value > 0 for value in values)


def processing_modes_agree(graph: Graph) -> Iterator[Diagnostic]:
    """Downstream of an operator that never repeats an item, no operator can see each item at least once."""
    for stream, source, sink in graph.edges():
        upstream, downstream = graph.by_name[source.node], graph.by_name[sink.node]
        mode: object = graph.value(upstream, OperatorContext.PROCESSING_MODE)
        follows: object = graph.value(downstream, OperatorContext.PROCESSING_MODE)
        if not (isinstance(mode, str) and isinstance(follows, str)):
            continue  # not modes: another law reports them
        if mode == ProcessingMode.AT_LEAST_ONCE or follows == ProcessingMode.AT_MOST_ONCE:
            continue
        has_mode = graph.set_on(downstream, OperatorContext.PROCESSING_MODE) is not None
        follower = f"is {follows}" if has_mode else "has no PROCESSING_MODE"
        yield Diagnostic(
            "mode-mismatch",
            f"{upstream.name} is {mode}, but {downstream.name} {follower}, and stream {stream.name!r} joins them",
            f"set PROCESSING_MODE of {downstream.name} to AT_MOST_ONCE, or of {upstream.name} to AT_LEAST_ONCE",
            downstream.where,
        )


def every_watermark_has_a_source(graph: Graph) -> Iterator[Diagnostic]:
    """An operator that acts on watermarks would wait for ever if no operator above it estimates one."""
    import networkx as nx  # noqa: PLC0415 - most commands compile nothing

    if graph.has_gaps:
        return  # the missing end may be a source
    sources = {node.name for node in graph.nodes if _estimates(node)}
    for node in graph.nodes:
        if getattr(node.operator, "uses_watermark", False) and not sources & nx.ancestors(graph.network, node.name):
            yield Diagnostic(
                "watermark-missing",
                f"{node.name} acts on watermarks, and no operator above it estimates one",
                "name the event time of the records at the operator that reads them, or put an EventTime before "
                f"{node.name}",
                node.where,
            )


def _estimates(node: Node) -> bool:
    operator = node.operator
    return isinstance(operator, Operator) and not operator.faults and operator.estimates_watermark


def items_that_meet_in_a_window_arrive_in_one(graph: Graph) -> Iterator[Diagnostic]:
    """Operators that find or read input independently of each other need not send what belongs together at once."""
    for node in graph.nodes:
        operator = node.operator
        windows = operator.windows_joined() if isinstance(operator, Operator) and not operator.faults else None
        if windows is None:
            continue
        origins = [_window_origins(graph, stream) for _, stream in graph.connected_inputs(node.name)]
        apart = sorted(set().union(*origins))
        if len(origins) < 2 or len(apart) < 2:
            continue
        within = "of one window" if windows == 1 else f"of at most {windows} windows"
        yield Diagnostic(
            "windows-apart",
            f"{node.name} brings together items {within}, and {' and '.join(apart)} may send them in other windows",
            f"let {node.name} keep items for longer, as a Join does without most_windows",
            node.where,
            Severity.WARNING,
        )


def _window_origins(graph: Graph, stream: Stream) -> set[str]:
    """The operators that decide in which windows the items of a stream arrive: they find, read or delay items."""
    origins, seen, waiting = set[str](), set[str](), [stream]
    while waiting:
        source = waiting.pop().source
        if source is None or source.node in seen:
            continue
        seen.add(source.node)
        node = graph.by_name[source.node]
        if isinstance(node.operator, InputOperator | SplittableOperator) or node.is_delay:
            origins.add(node.name)
        else:
            waiting += [into for _, into in graph.connected_inputs(node.name)]
    return origins
