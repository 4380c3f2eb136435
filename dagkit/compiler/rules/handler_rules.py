"""Laws of handlers: each connected input has a method that can take its items."""

import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dagkit.api.operators import InputOperator, Operator, RowOperator, handler_name, main_outlet
from dagkit.api.ports import InputPort, Outlet
from dagkit.api.work import SplittableOperator, work_port
from dagkit.errors import Code, Diagnostic, Severity, near
from dagkit.graph import Graph, Node
from dagkit.ranges import OffsetRange

_LOOK = ("begin_window", "emit_tuples", "handle_idle_time", "end_window", "before_checkpoint")
"""The methods of an input operator that the engine calls in each look."""


def every_connected_input_has_a_handler(graph: Graph) -> Iterator[Diagnostic]:
    """The first item at an input without a method would stop the run."""
    for node, port in _connected(graph):
        name = handler_name(port)
        if _is_handled(node, port):
            continue
        meant = near(name, _own_methods(type(node.operator)))
        help_ = f"define `def process(self, item)`, or decorate a method with @{port.name}.process"
        if meant is not None:
            help_ = f"did you mean {meant!r} to be {name!r}? Rename it, or decorate it with @{port.name}.process"
        named_wrong = meant is not None or port.handler is not None or _has_handlers(node)
        if isinstance(node.operator, SplittableOperator) and port.handler is None:
            named_wrong, help_ = True, f"decorate a method with @{port.name}.process: `process` is only for work"
        yield _fault(
            "input-unhandled",
            node,
            f"no method of {_class(node)} takes what flows into {node.name}.{port.name}"
            + ("" if port.handler is None and hasattr(node.operator, name) else f": it has no {name!r}"),
            help_,
            Severity.ERROR if named_wrong else Severity.WARNING,
        )


def every_input_operator_emits(graph: Graph) -> Iterator[Diagnostic]:
    """An input operator without a method that the engine calls would silently emit nothing.

    A class without any method of its own is not written yet: its graph can be drawn and planned, as with inputs.
    """
    for node in _silent_inputs(graph):
        if _own_methods(type(node.operator)) and not node.input_ports:  # with inputs, it is `root-fed` or a handler's
            yield _silent(node)


def methods_have_the_names_that_the_engine_calls(graph: Graph) -> Iterator[Diagnostic]:
    """A method that is spelled as in Apex, such as beginWindow, would silently never be called."""
    for node in graph.nodes:
        kind = type(node.operator)
        base = next((base for base in (SplittableOperator, InputOperator, Operator) if issubclass(kind, base)), kind)
        called = {name.replace("_", ""): name for name in dir(base) if _is_method(base, name)}
        called.pop("emittuples", None)  # every_input_operator_emits reports it
        for name in vars(kind):
            meant = called.get(name.lower(), name)
            if meant != name and getattr(kind, meant) is getattr(base, meant):
                problem = f"nothing calls {kind.__name__}.{name}"
                yield _fault("method-undefined", node, problem, f"did you mean {meant!r}? Rename it")


def work_on_plain_values_is_defined(graph: Graph) -> Iterator[Diagnostic]:
    """Only an element with positions, such as a block, defines the work on it."""
    for node in graph.nodes:
        operator = node.operator
        if not isinstance(operator, SplittableOperator) or operator.restriction_type is not OffsetRange:
            continue  # a type of its own needs a tracker first
        payload = node.input_ports[work_port(operator)].payload
        if payload in _PLAIN and type(operator).initial_restriction is SplittableOperator.initial_restriction:
            yield _fault(
                "method-undefined",
                node,
                f"{_class(node)} of {node.name} does not define the work on a {payload.__name__}",
                "write `def initial_restriction(self, element)`, which returns a range, such as (0, size)",
            )


_PLAIN = (str, bytes, int, float, dict, list, tuple)


def why_it_cannot_run(graph: Graph) -> list[Diagnostic]:
    """What is not written yet in a graph that can be drawn and planned."""
    handled = [replace(note, severity=Severity.ERROR) for note in every_connected_input_has_a_handler(graph)]
    return [*handled, *map(_silent, _silent_inputs(graph))]


def _silent_inputs(graph: Graph) -> list[Node]:
    """The input operators whose class has no method that the engine calls in a look, and that can emit items."""
    return [
        node
        for node in graph.nodes
        if node.is_input and all(getattr(type(node.operator), name) is getattr(InputOperator, name) for name in _LOOK)
    ]


def _silent(node: Node) -> Diagnostic:
    meant = near("emit_tuples", own := _own_methods(type(node.operator))) or next(iter(own), None)
    return _fault(
        "method-undefined",
        node,
        f"{_class(node)} has no 'emit_tuples', so {node.name} never emits an item",
        f"did you mean {meant!r} to be 'emit_tuples'? Rename it" if meant else "define `def emit_tuples(self)`",
    )


def every_handler_takes_one_item(graph: Graph) -> Iterator[Diagnostic]:
    """The engine calls the method with one item and no other argument."""
    for node, port in _connected(graph):
        method = getattr(node.operator, handler_name(port), None)
        if callable(method) and _is_handled(node, port) and not _takes_one(method):
            yield _fault(
                "handler-mismatched",
                node,
                f"{_class(node)}.{handler_name(port)}{_parameters(method)} cannot take an item of "
                f"{node.name}.{port.name}",
                f"write it as `def {handler_name(port)}(self, item)`: it is called with one item",
            )


def inputs_are_distinguished(graph: Graph) -> Iterator[Diagnostic]:
    """A plain `process` cannot distinguish the items of two inputs, so the author must declare that it takes both."""
    sharing: dict[str, list[str]] = {}
    for node, port in _connected(graph):
        if port.handler is None and _is_handled(node, port):
            sharing.setdefault(node.name, []).append(port.name)
    for name, ports in sharing.items():
        node = graph.by_name[name]
        if len(ports) > 1:
            yield _fault(
                "handler-mismatched",
                node,
                f"{' and '.join(f'{name}.{port}' for port in ports)} share one process, "
                "which cannot distinguish their items",
                f"decorate a method for each with @{ports[0]}.process and so on, or `process` with all of them",
                Severity.WARNING,
            )


def yielded_items_have_an_output(graph: Graph) -> Iterator[Diagnostic]:
    """The items that a handler yields go to the only output, or to the one that is marked as main."""
    fed: dict[str, list[InputPort[Any]]] = {}
    for node, port in _connected(graph):
        fed.setdefault(node.name, []).append(port)
    for name, ports in fed.items():
        node = graph.by_name[name]
        yielding = [handler_name(port) for port in ports if _is_handled(node, port) and _yields(node, port)]
        if not (yielding or isinstance(node.operator, RowOperator)) or _main_outlet(node) is not None:
            continue
        outputs = list(node.output_ports)
        several = f"{' and '.join(outputs)} are all outputs of {node.name}, and none is marked as main"
        yield _fault(
            "handler-mismatched",
            node,
            f"the items that {_class(node)}.{(yielding or ['process'])[0]} yields go nowhere: "
            + (several if outputs else f"{node.name} has no output"),
            f"mark one of them, as in {outputs[0]} = OutputPort(…, main=True)"
            if outputs
            else "declare an output, as in output = OutputPort(…), or take items in an Operator that yields nothing",
        )


def _connected(graph: Graph) -> Iterator[tuple[Node, InputPort[Any]]]:
    """Every connected input whose items a method of its operator must take."""
    for node in graph.nodes:
        if isinstance(node.operator, Operator):
            for port in node.input_ports.values():
                if not _is_engines(node.operator, port) and graph.streams_into(node.name, port.name):
                    yield node, port


def _is_engines(operator: Operator, port: InputPort[Any]) -> bool:
    """Whether the engine itself takes the items of the input. For readers that is only the input of their work."""
    if isinstance(operator, SplittableOperator):
        return port.name == work_port(operator)
    return operator.served_by_engine


def _is_handled(node: Node, port: InputPort[Any]) -> bool:
    """Whether a method takes the items of the input. The `process` of a reader is only for its work."""
    if isinstance(node.operator, SplittableOperator) and port.handler is None:
        return False
    return callable(getattr(type(node.operator), handler_name(port), None))


def _main_outlet(node: Node) -> Outlet[Any] | None:
    assert isinstance(node.operator, Operator), "only operators have handlers"
    return main_outlet(node.operator)


def _has_handlers(node: Node) -> bool:
    """Whether any input has a method. If so, the input without one was probably forgotten."""
    return any(callable(getattr(type(node.operator), handler_name(p), None)) for p in node.input_ports.values())


def _own_methods(operator: type) -> list[str]:
    """The methods that an author wrote, on the class or a base."""
    return [
        n for n in dir(operator) if not n.startswith("_") and not hasattr(InputOperator, n) and _is_method(operator, n)
    ]


def _is_method(operator: type, name: str) -> bool:
    return inspect.isfunction(inspect.getattr_static(operator, name))


def _yields(node: Node, port: InputPort[Any]) -> bool:
    return inspect.isgeneratorfunction(getattr(type(node.operator), handler_name(port), None))


def _takes_one(method: Any) -> bool:
    try:
        inspect.signature(method).bind(object())
    except TypeError:
        return False
    except ValueError:  # a C function without a signature
        return True
    return True


def _parameters(method: Any) -> str:
    return "(" + ", ".join(["self", *map(str, inspect.signature(method).parameters)]) + ")"


def _class(node: Node) -> str:
    return type(node.operator).__name__


def _fault(code: Code, node: Node, problem: str, help_: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(code, problem, help_, node.where, severity)
