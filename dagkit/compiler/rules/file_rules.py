"""Laws of files: an application must not read its own output."""

from collections.abc import Iterator

from dagkit.api.files import FileFinder, KnownItems, example_files
from dagkit.errors import Diagnostic, printable
from dagkit.graph import Graph, Node
from dagkit.urls import without_links


def no_operator_finds_what_another_writes(graph: Graph) -> Iterator[Diagnostic]:
    """An output file in a place that is searched for input would be read as input, and so would the output from it."""
    healthy = [node for node in graph.nodes if not node.operator.faults]
    finders = [(node, node.operator) for node in healthy if isinstance(node.operator, FileFinder)]
    if not finders:
        return
    written = [
        (writer, folder, [without_links(path) for path in paths])
        for writer in healthy
        for folder, paths in example_files(writer.operator).items()
    ]
    every = list(dict.fromkeys(path for _, _, paths in written for path in paths))
    found = [(node.name, set(finder.would_find(every, items_into(graph, node)))) for node, finder in finders]
    for writer, folder, paths in written:
        readers = " and ".join(name for name, theirs in found if not theirs.isdisjoint(paths))
        if readers:
            yield Diagnostic(
                "output-read",
                f"{writer.name} writes to {printable(folder)}, where {readers} would find its files and read them",
                f"let {writer.name} write to a folder outside of the input, or exclude its files by a pattern",
                writer.where,
            )


def items_into(graph: Graph, node: Node) -> list[object]:
    """The items that an operator gets and that are known before the application runs."""
    sources = [
        graph.by_name[end.node].operator
        for _, stream in graph.connected_inputs(node.name)
        for end in (stream.source, *stream.further_sources)
        if end is not None
    ]
    healthy = [source for source in sources if not source.faults]
    return [item for source in healthy if isinstance(source, KnownItems) for item in source.known_items()]
