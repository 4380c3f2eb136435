"""Which payload types may flow into which: the algebra of types."""

from dagkit.schema.types import Bindings, assignable, bind, identity, spelled, substitute

__all__ = ["Bindings", "assignable", "bind", "identity", "spelled", "substitute"]
