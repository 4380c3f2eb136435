"""Payload types: which may flow into which, their names, and the binding of type variables."""

from dagkit.schema.types import (
    Bindings,
    arguments_of_class,
    assignable,
    bind,
    class_of,
    fields_of_authors,
    identity,
    is_known,
    spelled,
    substitute,
)

__all__ = [
    "Bindings",
    "arguments_of_class",
    "assignable",
    "bind",
    "class_of",
    "fields_of_authors",
    "identity",
    "is_known",
    "spelled",
    "substitute",
]
