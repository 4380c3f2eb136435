"""Laws of files: what an application writes is not its own input."""

from collections.abc import Iterator

from dagkit.api.files import FileFinder, KnownItems, example_files
from dagkit.errors import Diagnostic, printable
from dagkit.graph import Graph, Node


def no_operator_finds_what_another_writes(graph: Graph) -> Iterator[Diagnostic]:
    """A file that is written where input is looked for would be read in turn, and so would what is made of it."""
    healthy = [node for node in graph.nodes if not node.operator.faults]
    finders = [(node, node.operator) for node in healthy if isinstance(node.operator, FileFinder)]
    for writer in healthy if finders else ():
        for folder, paths in example_files(writer.operator).items():
            found = [
                node.name
                for node, finder in finders
                if any(finder.would_find(path, _items_into(graph, node)) for path in paths)
            ]
            if found:
                looks = f"{' and '.join(found)} would find its files and read them"
                yield Diagnostic(
                    "output-read",
                    f"{writer.name} writes to {printable(folder)}, where {looks}",
                    f"let {writer.name} write to a folder outside of the input, or leave its files out by a pattern",
                    writer.where,
                )


def _items_into(graph: Graph, node: Node) -> list[object]:
    """The items that come into an operator and are known before the application runs."""
    sources = [
        graph.by_name[end.node].operator
        for _, stream in graph.connected_inputs(node.name)
        for end in (stream.source, *stream.further_sources)
        if end is not None
    ]
    healthy = [source for source in sources if not source.faults]
    return [item for source in healthy if isinstance(source, KnownItems) for item in source.known_items()]
