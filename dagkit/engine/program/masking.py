"""Masks an application's secrets in all that leaves a run: failures, and the records that dagkit logs."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from typing import Any

from dagkit.api.secrets import MASK, secrets_in
from dagkit.engine.program.operator_output import LogPlace, SlotOutput
from dagkit.engine.program.program import Program
from dagkit.errors import DagkitError

_MASKED_LOGGERS = ("dagkit", "dagkit_operators", "confluent_kafka", "deltalake", "kombu", "pyiceberg", "sqlalchemy")
"""The packages whose log records are masked: our own, and clients that get secrets from our operators."""


class Masking:
    """Replaces secrets by a mask. They are collected when they are needed first."""

    def __init__(self, holders: Callable[[], Iterable[object]]) -> None:
        self._holders = holders

    @classmethod
    def of(cls, program: Callable[[], Program]) -> "Masking":
        """Return the masking of all secrets that a program's operators and stream codecs hold."""
        return cls(lambda: _holders_in(program()))

    def hide(self, text: str) -> str:
        """Return the text with a mask for each secret."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def mask(self, error: BaseException) -> None:
        """Mask an exception, and those that led to it, in place: where they are raised, they stay the same objects."""
        seen: set[int] = set()
        cause: BaseException | None = error
        while cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            cause.args = self._hidden(cause.args)
            if isinstance(cause, DagkitError):
                known = vars(cause)
                known.update({name: self._hidden(value) for name, value in known.items() if name != "code"})
            cause = cause.__cause__ or cause.__context__

    @contextmanager
    def masked(self) -> Iterator[None]:
        """Within the block, mask what dagkit logs; mask the exception that leaves the block."""
        before, is_over = logging.getLogRecordFactory(), False

        def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = before(*args, **kwargs)
            if not is_over and record.name.partition(".")[0] in _MASKED_LOGGERS:
                self._mask_record(record)
            return record

        logging.setLogRecordFactory(make)
        try:
            yield
        except BaseException as error:
            self.mask(error)
            raise
        finally:
            is_over = True
            if logging.getLogRecordFactory() is make:  # else another one was put around it, and keeps it
                logging.setLogRecordFactory(before)

    @cached_property
    def _secrets(self) -> list[str]:
        """The secrets, the longest first: it may contain another."""
        from dagkit.conf.sources.references import is_secret_name  # noqa: PLC0415 - workers load it only after a failure

        found = {secret for holder in self._holders() for secret in secrets_in(holder, is_secret_name)}
        return sorted(found, key=len, reverse=True)

    def _mask_record(self, record: logging.LogRecord) -> None:
        record.msg = self._shown(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(self._shown(argument) for argument in record.args)
        elif isinstance(record.args, Mapping):
            record.args = {name: self._shown(argument) for name, argument in record.args.items()}
        if record.exc_info:
            text = logging.Formatter().formatException(record.exc_info)
            if (hidden := self.hide(text)) != text:
                record.exc_text, record.exc_info = hidden, None

    def _shown(self, argument: object) -> object:
        """An argument of a log message, as text if its text holds a secret."""
        for text in (str(argument), repr(argument)):
            if (hidden := self.hide(text)) != text:
                return hidden
        return argument

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hide(value)
        if type(value) is tuple:
            return tuple(map(self._hidden, value))
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{one.name: self._hidden(getattr(value, one.name)) for one in fields(value)})
        return value


def masked_output(
    log: LogPlace | None, program: Program, window_id: int, operators: Mapping[int, str], *, takes_records: bool = True
) -> SlotOutput | None:
    """The output of a slot, with the names of its operators by their identity; None if there is no log for it."""
    if log is None:
        return None
    return SlotOutput(log, program.application, window_id, operators, Masking.of(lambda: program).hide, takes_records)


def _holders_in(program: Program) -> Iterator[object]:
    for operators in program.operators.values():
        yield from operators
    for target in program.targets.values():
        yield target.keying.codec
