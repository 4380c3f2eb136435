"""Opens an application: finds it, makes it, reads its configuration, and compiles it."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dagkit.api.application import StreamingApplication
from dagkit.api.configuration import Config
from dagkit.api.traces import shown_path
from dagkit.cli.application.finding import Place, place_of
from dagkit.cli.application.importing import authored, folder_of_imports, hidden_by
from dagkit.cli.application.options import Asked
from dagkit.cli.terminal.output import Output
from dagkit.compiler import Compilation, Step, compile_until
from dagkit.conf.sources.property_files import ENDINGS
from dagkit.conf.sources.sources import COMMAND_LINE, ENVIRONMENT, Sources, files_of, load
from dagkit.errors import ApplicationFaults, Code, ConfigurationFaults, Diagnostic, errors_among
from dagkit.ground.amounts import counted

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
"""Faults of configuration, wherever they are; other faults count only if they are in a property file."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An application with its configuration and the faults found while reading it."""

    asked: Asked
    place: Place
    application: StreamingApplication
    conf: Config
    faults: tuple[Diagnostic, ...] = ()
    missed: str = ""
    """If no property file was found: the names under which one is searched."""

    def compiled(self, until: Step = "ordered", *, forgiving: bool = False) -> Compilation:
        """Compile up to a step; raise `ApplicationFaults` if a fault prevents that.

        If `forgiving`, return the forms that were reached instead, with every fault among the notes.
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
        """Every form that was reached, with every fault among the notes."""
        try:
            return self.compiled(forgiving=True)
        except ApplicationFaults as faults:
            # An author's object that the compiler calls, such as a partitioner, has raised: nothing forgives that.
            reached, raised = self.compiled("resolved"), faults.__cause__
            diagnostics = (*faults.diagnostics, *reached.notes)
            return replace(reached, notes=diagnostics, raised=raised if isinstance(raised, Exception) else None)

    def conclude(self, compilation: Compilation, output: Output) -> None:
        """Print the notes of a compilation whose form was shown; if there are faults, end the command."""
        if errors_among(compilation.notes):
            faults = self.blamed(compilation.application, compilation.notes)
            faults.__cause__ = compilation.raised
            output.end(faults)
        output.notes(compilation.notes)

    def blamed(self, name: str, diagnostics: Sequence[Diagnostic]) -> ApplicationFaults:
        """The exception for these diagnostics, with the matching exit code."""
        places = {*_keys_by_file(self.conf), COMMAND_LINE.file, ENVIRONMENT.file}
        about_configuration = (
            error.code in CONFIGURATION_CODES or (error.where is not None and error.where.file in places)
            for error in errors_among(diagnostics)
        )
        return (ConfigurationFaults if all(about_configuration) else ApplicationFaults)(name, diagnostics)


@contextlib.contextmanager
def opened(asked: Asked, output: Output) -> Iterator[Opened]:
    """Open the requested application; within the block, its own modules can be imported."""
    with place_of(asked.target) as place:
        candidate = place.choose(asked.application)
        output.detail(f"application: {candidate.name}" + (f" at {candidate.where}" if candidate.where else ""))
        _warn_of_hidden_modules(place, output)
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
        for file, keys in _keys_by_file(conf).items() if output.verbose else ():
            output.detail(f"configuration: {counted(keys, 'key')} from {file}")
        yield Opened(asked, place, application, conf, tuple(faults), missed)


def _keys_by_file(conf: Config) -> Counter[str]:
    """How many keys each place has that was read."""
    places = [entry.origin.where for entry in conf.entries]
    return Counter(where.file for where in places if where is not None)


def _warn_of_hidden_modules(place: Place, output: Output) -> None:
    """Print which files beside the application libraries import in the place of Python's own modules."""
    with contextlib.suppress(OSError):
        for hidden in hidden_by(folder_of_imports(place.file) if place.file else Path.cwd()):
            output.message(
                f"warning: {shown_path(str(hidden))} hides Python's own module {hidden.stem}, and libraries that "
                "import that fail or misbehave; rename it"
            )


def _missed(application: str) -> str:
    """The message that no property file was found, with the names that were searched."""
    *endings, last = ENDINGS
    return (
        f"no property file was found: dagkit looks beside the application for properties or properties-{application}, "
        f"ending in {', '.join(endings)} or {last}"
    )


def compiled(asked: Asked, output: Output) -> Compilation:
    """Compile the requested application to the last step."""
    with opened(asked, output) as application:
        return application.compiled()
