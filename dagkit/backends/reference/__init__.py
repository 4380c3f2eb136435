"""The reference backend: single-threaded, plain Python. It is slow, and it defines the correct result."""

from dagkit.backends.reference.interpreter import ReferenceBackend

__all__ = ["ReferenceBackend"]
