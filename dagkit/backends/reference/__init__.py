"""The reference: a plan run by honest, single-threaded Python. It is slow, and it is right."""

from dagkit.backends.reference.interpreter import ReferenceBackend

__all__ = ["ReferenceBackend"]
