"""Laws of files: an application must not read its own output, write one file twice, nor read lines twice."""

from collections.abc import Iterator, Mapping
from typing import Any

from dagkit.api.files import FileFinder, KnownItems, SendsGrownFiles, example_files, example_outputs
from dagkit.api.work import SplittableOperator
from dagkit.errors import Diagnostic, Severity, printable
from dagkit.graph import Graph, Node
from dagkit.ground.urls import is_url, without_links
from dagkit.schema import is_known


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


def no_two_operators_write_one_file(graph: Graph) -> Iterator[Diagnostic]:
    """A file is complete with what one operator writes to it; the window in which another one writes it is refused."""
    writers: dict[str, Node] = {}
    for node in graph.nodes:
        if node.operator.faults:
            continue
        for folder, paths in example_outputs(node.operator).items():
            shared = [writers.setdefault(without_links(path), node) for path in paths]
            if first := next((writer for writer in shared if writer is not node), None):
                # A warning, because operators that name files by their items may do so by different ones.
                yield Diagnostic(
                    "output-shared",
                    f"{first.name} and {node.name} write to {printable(folder)} and name their files alike; a window "
                    "in which both write the same file is refused",
                    f"let {node.name} write to a folder of its own, or give its files other names",
                    node.where,
                    Severity.WARNING,
                )


def written_by(graph: Graph) -> Mapping[str, tuple[str, ...]]:
    """The folders of this machine into which operators write, without links, with examples of the names of files."""
    found: dict[str, tuple[str, ...]] = {}
    for node in graph.nodes:
        for folder, paths in example_files(node.operator).items():
            if not is_url(folder):
                names = (path.removeprefix(folder).lstrip("/") for path in paths)
                found[without_links(folder)] = (*found.get(without_links(folder), ()), *names)
    return found


def files_that_are_followed_are_sent_once(graph: Graph) -> Iterator[Diagnostic]:
    """An operator that follows a file reads what is appended; if the file is sent again, it reads all lines twice."""
    for node in graph.nodes:
        if node.operator.faults or not isinstance(node.operator, SendsGrownFiles):
            continue
        followers = " and ".join(sorted(each.name for each in followers_of(graph, node)))
        if not node.operator.sends_grown(followed=bool(followers)):
            yield from _unread(graph, node)
        elif followers:
            yield Diagnostic(
                "file-doubled",
                f"{node.name} sends a file again after it has grown, and {followers}, which follows it, would read "
                "its lines twice",
                f"leave the property of {node.name} that says so at its default: then it does not send it again",
                node.where,
            )


def _unread(graph: Graph, node: Node) -> Iterator[Diagnostic]:
    """What is appended to a file is lost to a reader that does not follow it, unless the file is sent again."""
    readers = [each for each in _receivers_of_files(graph, node) if not _follows(each)]
    names = " and ".join(sorted(each.name for each in readers if isinstance(each.operator, SplittableOperator)))
    if names:
        yield Diagnostic(
            "guarantee-waived",
            f"{node.name} does not send a file again after it has grown, so what is appended never reaches {names}",
            f"let another operator find the files for {names}, unless this is intended",
            node.where,
            Severity.ADVISORY,
        )


def followers_of(graph: Graph, node: Node) -> list[Node]:
    """The operators that follow the files which this one finds, as `follows_files` says."""
    return [each for each in _receivers_of_files(graph, node) if _follows(each)]


def _follows(node: Node) -> bool:
    return bool(getattr(node.operator, "follows_files", False))


def _receivers_of_files(graph: Graph, node: Node) -> list[Node]:
    """The operators that get the files which an operator finds, also through others that pass them on.

    A stream whose type is unknown may carry files. Files that a further finder sends are its own.
    """
    if not isinstance(node.operator, SendsGrownFiles):
        return []
    sent = [node.payload(port) for port in node.output_ports.values()]
    found: dict[str, Node] = {}
    follow = [node]
    while follow:
        sender = follow.pop()
        for name, port in sender.output_ports.items():
            payload = sender.payload(port)
            if is_known(payload) and payload not in sent:
                continue
            for end in (sink for stream in graph.streams_from(sender.name, name) for sink in stream.sinks):
                if end.node not in found and not isinstance(graph.by_name[end.node].operator, FileFinder):
                    found[end.node] = graph.by_name[end.node]
                    follow.append(graph.by_name[end.node])
    return list(found.values())


def items_into(graph: Graph, node: Node) -> list[object]:
    """The items that an operator gets and that are known before the application runs."""
    return [item for source in _senders(graph, node) if isinstance(source, KnownItems) for item in source.known_items()]


def all_items_into(graph: Graph, node: Node) -> tuple[object, ...] | None:
    """The items that an operator gets, if all of them are known before the application runs; else None."""
    senders = _senders(graph, node)
    are_known = bool(senders) and all(isinstance(sender, KnownItems) for sender in senders)
    return tuple(items_into(graph, node)) if are_known else None


def _senders(graph: Graph, node: Node) -> list[Any]:
    """The operators without faults that send to an operator."""
    senders = [graph.by_name[name].operator for name in graph.senders(node.name)]
    return [sender for sender in senders if not sender.faults]
