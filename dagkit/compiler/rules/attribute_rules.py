"""Laws of attributes: values have the right type, reach the workers, and are set where they have an effect."""

import pickle
from collections.abc import Iterator
from enum import Enum
from typing import Any

import cloudpickle

from dagkit.api.attributes import Attribute, Standing
from dagkit.api.configuration import Origin, Setting, Source
from dagkit.conf.values.attribute_values import attribute_value
from dagkit.errors import Diagnostic, Severity
from dagkit.graph import Graph, Settings


def settings_hold_values_of_their_kind(graph: Graph) -> Iterator[Diagnostic]:
    """A window length is a number, a partitioner is a Partitioner: code may set only values that files may set."""
    for bearer, attribute, setting in _all_settings(graph):
        # Values of configuration were checked when they were converted.
        if setting.value is None or setting.origin.source is not Source.CODE:
            continue
        try:
            attribute_value(attribute, setting.value)
        except ValueError as wrong:
            yield Diagnostic(
                "attribute-invalid",
                f"{attribute.name} of {bearer} is {setting.value!r}: {wrong}",
                f"{attribute.name}: {attribute.meaning}; its default is {attribute.default!r}",
                setting.origin.where,
            )


def settings_can_be_pickled(graph: Graph) -> Iterator[Diagnostic]:
    """Attributes are sent to the workers, so they must not hold locks or open files."""
    for bearer, attribute, setting in _all_settings(graph):
        reason = _why_unpicklable(setting.value)
        if reason:
            yield Diagnostic(
                "attribute-unpicklable",
                f"{attribute.name} of {bearer} cannot be sent to the workers: {reason}",
                "set it to a plain value, or create the object in setup",
                setting.origin.where,
            )


def port_attributes_are_set_on_connected_ports(graph: Graph) -> Iterator[Diagnostic]:
    """An attribute of an unconnected port has no effect, so it was probably meant for another port."""
    for node in graph.nodes:
        sides = (
            (node.inputs, graph.streams_into),
            (node.outputs, graph.streams_from),
            (node.unifiers, graph.streams_from),
        )
        for settings_by_port, streams in sides:
            for port, settings in settings_by_port.items():
                if not (node.unsure or streams(node.name, port)):
                    yield from _stranded(f"{node.name}.{port}", settings)


def _stranded(port: str, settings: Settings) -> Iterator[Diagnostic]:
    for attribute, setting in settings.items():
        yield Diagnostic(
            "attribute-stranded",
            f"{attribute.name} is set on {port}, which no stream uses",
            f"connect a stream to {port}, or set the attribute on a connected port",
            setting.origin.where,
        )


def attributes_off_the_platform_are_reported(graph: Graph) -> Iterator[Diagnostic]:
    """Attributes that have an effect only on YARN are accepted and reported, once for each key or line."""
    borne: dict[tuple[Attribute[Any], Origin], list[str]] = {}
    for bearer, attribute, setting in _all_settings(graph):
        if attribute.standing is Standing.ADVISORY:
            borne.setdefault((attribute, setting.origin), []).append(bearer)
    for (attribute, origin), bearers in borne.items():
        more = f" and {len(bearers) - 1} more" if len(bearers) > 1 else ""
        yield Diagnostic(
            "attribute-advisory",
            f"{attribute.name} of {bearers[0]}{more} is accepted, but has no effect here",
            "remove it if the application runs only on dagkit",
            origin.where,
            Severity.ADVISORY,
        )


def _all_settings(graph: Graph) -> Iterator[tuple[str, Attribute[Any], Setting]]:
    """Every attribute that is set, with the name of the application, operator or port that has it."""
    for attribute, setting in graph.attributes.items():
        yield graph.application, attribute, setting
    for node in graph.nodes:
        yield from ((node.name, attribute, setting) for attribute, setting in node.attributes.items())
        for by_port, suffix in ((node.inputs, ""), (node.outputs, ""), (node.unifiers, "#unifier")):
            for port, settings in by_port.items():
                for attribute, setting in settings.items():
                    yield f"{node.name}.{port}{suffix}", attribute, setting


def _why_unpicklable(value: object) -> str | None:
    if value is None or isinstance(value, bool | int | float | str | Enum | type):
        return None
    try:
        cloudpickle.dumps(value)
    except (pickle.PicklingError, TypeError, AttributeError, NotImplementedError) as refused:
        return str(refused)
    return None
