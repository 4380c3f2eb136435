"""Opening an application: found, made, and configured; then compiled."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dagkit.api.application import StreamingApplication
from dagkit.api.config import Config
from dagkit.cli.finding import Place, place_of
from dagkit.cli.importing import authored
from dagkit.cli.options import Asked
from dagkit.compiler import Compilation, Step, compile_until
from dagkit.conf.sources import COMMAND_LINE, ENVIRONMENT, Sources, load
from dagkit.errors import ApplicationFaults, Code, Diagnostic, errors_among

CONFIGURATION_CODES: frozenset[Code] = frozenset(
    {
        "file-unreadable",
        "key-malformed",
        "key-unmatched",
        "key-duplicated",
        "key-final",
        "key-required",
        "reference-unresolved",
    }
)
"""Faults of configuration wherever they stand; other faults are where a property file is at fault."""


class ConfigurationFaults(ApplicationFaults):
    """Every error is about configuration: the application itself may be right."""

    exit_code: ClassVar[int] = 4


@dataclass(frozen=True, slots=True)
class Opened:
    """An application that can be compiled, with its configuration and the faults of reading that."""

    asked: Asked
    place: Place
    application: StreamingApplication
    conf: Config
    faults: tuple[Diagnostic, ...] = ()

    def compiled(self, until: Step = "ordered") -> Compilation:
        """What compiling it gives; `ApplicationFaults` where anything is wrong, whoever raised it."""
        try:
            with authored(self.application.application_name, "compiling stopped", only_theirs=True):
                return compile_until(
                    until,
                    self.application,
                    self.conf,
                    conf_faults=self.faults,
                    allow_unknown=self.asked.allow_unknown,
                )
        except ApplicationFaults as faults:
            if self._is_configuration_alone(errors_among(faults.diagnostics)):
                raise ConfigurationFaults(faults.application, faults.diagnostics) from faults.__cause__
            raise

    def _is_configuration_alone(self, errors: Sequence[Diagnostic]) -> bool:
        read = {entry.origin.where.file for entry in self.conf.entries if entry.origin.where}
        places = {*read, COMMAND_LINE.file, ENVIRONMENT.file}
        return all(e.code in CONFIGURATION_CODES or (e.where and e.where.file in places) for e in errors)


@contextlib.contextmanager
def opened(asked: Asked) -> Iterator[Opened]:
    """The application that was asked for; while it is held, its own modules can be imported."""
    with place_of(asked.target) as place:
        application = place.choose(asked.application).make()
        conf, faults = load(
            Sources.here(
                application=application.application_name,
                folder=place.folder,
                package_file=asked.apconf,
                files=asked.files,
                definitions=asked.defines,
            )
        )
        yield Opened(asked, place, application, conf, tuple(faults))


def compiled(asked: Asked) -> Compilation:
    """The application that was asked for, compiled to the last step."""
    with opened(asked) as application:
        return application.compiled()
