"""What dagkit changes in PySpark's connection to Java."""

import logging
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter


def find_numpy_without_pandas() -> None:
    """Let PySpark find values of numpy among the arguments of calls to Java without importing pandas."""
    # At the first call, PySpark imports its own tests to learn whether numpy is installed, and these import pandas: a
    # quarter of a second of processor time. A value of numpy exists only if numpy has been imported.
    NumpyScalarConverter.can_convert = _is_scalar  # type: ignore[method-assign]
    NumpyArrayConverter.can_convert = _is_array  # type: ignore[method-assign]


def _is_scalar(self: NumpyScalarConverter, obj: Any) -> bool:  # noqa: ARG001 - PySpark's signature
    return _is_of_numpy("generic", obj)


def _is_array(self: NumpyArrayConverter, obj: Any) -> bool:  # noqa: ARG001 - PySpark's signature
    return _is_of_numpy("ndarray", obj) and obj.ndim == 1


def _is_of_numpy(name: str, value: Any) -> bool:
    of_numpy = getattr(sys.modules.get("numpy"), name, None)  # None also while another thread imports numpy
    return of_numpy is not None and isinstance(value, of_numpy)


def ignore_ended_java(context: Any) -> None:
    """Suppress the tracebacks of PySpark and its gateway when Java ends: dagkit reports that in one sentence."""
    logging.getLogger().addFilter(_is_other_error)
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = _other_errors(server.handle_error)


def _is_other_error(record: logging.LogRecord) -> bool:
    return not (record.module == "java_gateway" and record.msg == "Exception while sending command.")


def _other_errors(handle: Callable[..., None]) -> Callable[..., None]:
    def handle_error(*where: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            handle(*where)

    return handle_error
