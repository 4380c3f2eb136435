"""Opening an application: found, made, and configured; then compiled."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dagkit.api.application import StreamingApplication
from dagkit.api.configuration import Config
from dagkit.cli.application.finding import Place, place_of
from dagkit.cli.application.importing import authored
from dagkit.cli.application.options import Asked
from dagkit.cli.terminal.output import Output, counted
from dagkit.compiler import Compilation, Step, compile_until
from dagkit.conf.formats.property_files import ENDINGS
from dagkit.conf.sources.sources import COMMAND_LINE, ENVIRONMENT, Sources, files_of, load
from dagkit.errors import ApplicationFaults, Code, ConfigurationFaults, Diagnostic, errors_among

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


@dataclass(frozen=True, slots=True)
class Opened:
    """An application that can be compiled, with its configuration and the faults of reading that."""

    asked: Asked
    place: Place
    application: StreamingApplication
    conf: Config
    faults: tuple[Diagnostic, ...] = ()
    missed: str = ""
    """Where no property file was found: how one is called."""

    def compiled(self, until: Step = "ordered", *, forgiving: bool = False) -> Compilation:
        """What compiling it gives. Raises `ApplicationFaults` where a fault keeps that step from being reached.

        To the forgiving the forms before it are given, with every fault among the notes.
        """
        name = self.application.application_name
        try:
            with authored(name, "compiling stopped", only_theirs=True):
                compilation = compile_until(
                    until,
                    self.application,
                    self.conf,
                    conf_faults=self.faults,
                    allow_unknown=self.asked.allow_unknown,
                    forgiving=forgiving,
                )
        except ApplicationFaults as faults:
            raise self.blamed(faults.application, faults.diagnostics) from faults.__cause__
        return compilation

    def as_far_as_it_goes(self) -> Compilation:
        """Every form that could be reached, and every fault among the notes."""
        try:
            return self.compiled(forgiving=True)
        except ApplicationFaults as faults:  # out of what the author gave the compiler to ask, such as a partitioner
            reached, raised = self.compiled("resolved"), faults.__cause__
            told = (*faults.diagnostics, *reached.notes)
            return replace(reached, notes=told, raised=raised if isinstance(raised, Exception) else None)

    def conclude(self, told_by: Compilation, output: Output) -> None:
        """Tell what was noted beside a form that could be shown all the same; faults end the command."""
        if errors_among(told_by.notes):
            faults = self.blamed(told_by.application, told_by.notes)
            faults.__cause__ = told_by.raised
            output.end(faults)
        output.notes(told_by.notes)

    def blamed(self, name: str, diagnostics: Sequence[Diagnostic]) -> ApplicationFaults:
        """The diagnostics as the exception whose exit code fits them."""
        read = {entry.origin.where.file for entry in self.conf.entries if entry.origin.where}
        places = {*read, COMMAND_LINE.file, ENVIRONMENT.file}
        about_configuration = (
            error.code in CONFIGURATION_CODES or (error.where is not None and error.where.file in places)
            for error in errors_among(diagnostics)
        )
        return (ConfigurationFaults if all(about_configuration) else ApplicationFaults)(name, diagnostics)


@contextlib.contextmanager
def opened(asked: Asked, output: Output) -> Iterator[Opened]:
    """The application that was asked for; while it is held, its own modules can be imported."""
    with place_of(asked.target) as place:
        candidate = place.choose(asked.application)
        output.detail(f"application: {candidate.name}" + (f" at {candidate.where}" if candidate.where else ""))
        application = candidate.make()
        sources = Sources.here(
            application=application.application_name,
            folder=place.folder,
            package_file=asked.apconf,
            files=asked.files,
            definitions=asked.defines,
        )
        conf, faults = load(sources)
        missed = "" if files_of(sources) else _missed(application.application_name)
        if missed:
            output.detail(missed)
        read = Counter(str(entry.origin.where.file) for entry in conf.entries if entry.origin.where)
        for file, keys in read.items():
            output.detail(f"configuration: {counted(keys, 'key')} from {file}")
        yield Opened(asked, place, application, conf, tuple(faults), missed)


def _missed(application: str) -> str:
    """That no property file was found, and what would have been one."""
    *endings, last = ENDINGS
    return (
        f"no property file was found: beside the application it is called properties or properties-{application}, "
        f"and ends in {', '.join(endings)} or {last}"
    )


def compiled(asked: Asked, output: Output) -> Compilation:
    """The application that was asked for, compiled to the last step."""
    with opened(asked, output) as application:
        return application.compiled()
