"""The reference backend: runs a plan in single-threaded plain Python. It is slow and simple."""

from dagkit.backends.reference.interpreter import ReferenceBackend

__all__ = ["ReferenceBackend"]
