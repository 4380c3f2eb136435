"""What may flow where: the algebra of payload types."""

from dagkit.schema.types import Bindings, assignable, bind, identity, spelled, substitute

__all__ = ["Bindings", "assignable", "bind", "identity", "spelled", "substitute"]
