"""Given input: a compiled application whose input operators emit what a test gives them, instead of looking."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from dagkit.api.component import Component
from dagkit.api.operators import InputOperator
from dagkit.api.ports import OutputPort, output_ports
from dagkit.api.state import State
from dagkit.compiler import Compilation
from dagkit.compiler.fuse import Fused
from dagkit.errors import did_you_mean

Looks = Sequence[Mapping[str, Sequence[Any]]]
"""What is emitted in each look: items, by input operator, or by `operator.port` if it has several outputs."""


def with_input(compilation: Compilation, looks: Looks) -> Compilation:
    """The compilation with each named input operator replaced. Input operators that `looks` does not name remain."""
    fused = compilation.steps["fused"]
    assert isinstance(fused, Fused), "an application is compiled to the end before it runs"
    ports = {key: _port_named(compilation, key) for look in looks for key in look}
    partitioned = dict(fused.partitioned)
    for name in {name for name, _ in ports.values()}:
        given = [{ports[key][1]: tuple(look[key]) for key in look if ports[key][0] == name} for look in looks]
        operator = _given_class(compilation.graph.by_name[name].operator)(looks=tuple(given))
        partitions = tuple(replace(partition, operator=operator) for partition in partitioned[name].partitions)
        partitioned[name] = replace(partitioned[name], partitions=partitions)
    return replace(compilation, steps={**compilation.steps, "fused": replace(fused, partitioned=partitioned)})


def _port_named(compilation: Compilation, key: str) -> tuple[str, str]:
    """The operator and the port of a key. Raise KeyError, with a similar name, if there is none."""
    name, _, port = key.partition(".")
    nodes = {node.name: node for node in compilation.graph.nodes if isinstance(node.operator, InputOperator)}
    if name not in nodes:
        raise KeyError(f"no input operator {name!r}; {did_you_mean(name, nodes)}")
    outputs = nodes[name].output_ports
    if not port and len(outputs) == 1:
        (port,) = outputs
    port = port or next((each.name for each in outputs.values() if each.main), "")
    if port not in outputs:
        raise KeyError(f"{name} has no output {port!r}; name one of {', '.join(f'{name}.{each}' for each in outputs)}")
    return name, port


class Given(InputOperator):
    """Emits in each look what was given for it. Subclasses declare the outputs of the operator that they replace."""

    looks: tuple[dict[str, tuple[Any, ...]], ...] = ()
    looked = State(0)

    def emit_tuples(self) -> None:
        """Emit what is given for the present look."""
        if self.looked < len(self.looks):
            for port, items in self.looks[self.looked].items():
                for item in items:
                    getattr(self, port).emit(item)
            self.looked += 1

    def looks_again_in_millis(self) -> int:
        """Look again at once: what comes next is known."""
        return 0


def _given_class(replaced: Component) -> type[Given]:
    """A class of given input with the outputs of an operator."""
    ports: Mapping[str, OutputPort[Any]] = output_ports(type(replaced))
    return type("Given", (Given,), {"__module__": __name__} | {name: copy(port) for name, port in ports.items()})
