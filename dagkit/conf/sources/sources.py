"""The sources of settings, in order of strength, and which value wins if several sources set the same key.

Weakest first: the installation's `site-default` and `site` files, the application's `properties` and `properties-NAME`
files, the user's `~/.dagkit/site`, a file of the application's `conf` folder, the files of `--conf`, the environment,
and `-D`.
"""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dagkit.api.configuration import Config, Entry, Origin, Source
from dagkit.conf.grammar.property_keys import PREFIXES, Malformed, canonical, is_variable
from dagkit.conf.sources.property_files import CHECK_THE_PATH, ENDINGS, read_file
from dagkit.conf.sources.references import References, Unresolved, names_referred, shown_instead
from dagkit.conf.sources.written import WrittenKey
from dagkit.errors import Diagnostic, Severity, Where

COMMAND_LINE = Where("the command line")
ENVIRONMENT = Where("the environment")


@dataclass(frozen=True, slots=True)
class Sources:
    """The settings of a launch, and the places with further ones."""

    application: str = ""
    """The application's name, for `properties-NAME` files."""
    folder: Path | None = None
    """The folder of the application's `app.py`."""
    package_file: str | None = None
    """The name of the file, in the application's `conf` folder, that `--apconf` gives."""
    files: Sequence[str | Path] = ()
    """The files of `--conf`. Later files win."""
    definitions: Sequence[tuple[str, str]] = ()
    """The keys of `-D` with their values. Later ones win."""
    environment: Mapping[str, str] = field(default_factory=dict)
    home: Path | None = None
    """The user's home. Its folder `.dagkit` may contain a site file."""
    installation: Path | None = None
    """The folder with the site files of this machine."""

    @classmethod
    def here(cls, **given: Any) -> "Sources":
        """The given sources, with the environment, the user and the installation of this process."""
        installation = os.environ.get("DAGKIT_SITE")
        return cls(
            environment=dict(os.environ),
            home=Path.home(),
            installation=Path(installation) if installation else None,
            **given,
        )


def load(sources: Sources) -> tuple[Config, list[Diagnostic]]:
    """Every setting from every source, the strongest last, and the faults in them."""
    groups, faults = _gathered(sources)
    for group in groups:
        faults += _duplicates(group)
    given, misset = _weighed(groups)
    config, unresolved = _resolved(given, sources.environment)
    return config, [*faults, *misset, *unresolved]


def files_of(sources: Sources) -> list[Path]:
    """The property files that `load` reads, the weakest first."""
    return [path for _, paths in _places(sources) for path in paths]


# -- gathering -------------------------------------------------------------------------------------------------------


_Group = Sequence[WrittenKey]
"""The keys of one place, such as a file. Each key should occur in it once."""


def _gathered(sources: Sources) -> tuple[list[_Group], list[Diagnostic]]:
    groups: list[_Group] = []
    faults: list[Diagnostic] = []
    for source, paths in _places(sources):
        group: list[WrittenKey] = []
        for path in paths:
            written, found = read_file(path, _instead_of(source, path), source)
            group += written
            faults += found
        groups.append(group)
    variables = [(name, value) for name, value in sorted(sources.environment.items()) if is_variable(name)]
    groups.append([WrittenKey(*pair, ENVIRONMENT, source=Source.ENVIRONMENT) for pair in variables])
    groups.append([WrittenKey(*pair, COMMAND_LINE, source=Source.COMMAND_LINE) for pair in sources.definitions])
    return groups, faults


def _places(sources: Sources) -> Iterable[tuple[Source, list[Path]]]:
    if sources.installation:
        yield Source.SITE_DEFAULT, _present(sources.installation, "site-default")
        yield Source.SITE, _present(sources.installation, "site")
    if sources.folder:
        yield Source.APPLICATION, _present(sources.folder, "properties")
        if sources.application:
            yield Source.APPLICATION_NAMED, _present(sources.folder, f"properties-{sources.application}")
    if sources.home:
        yield Source.USER_SITE, _present(sources.home / ".dagkit", "site")
    if sources.package_file:
        yield Source.PACKAGE_FILE, [(sources.folder or Path()) / "conf" / sources.package_file]
    for path in sources.files:
        yield Source.FILE, [Path(path)]


def _instead_of(source: Source, path: Path) -> str:
    """The help for a missing file."""
    if source is not Source.PACKAGE_FILE:
        return CHECK_THE_PATH
    there = sorted(p.name for p in path.parent.glob("*") if p.suffix in ENDINGS) if path.parent.is_dir() else []
    if not there:
        return "--apconf names a file in the folder conf beside the application, which has none; --conf takes any path"
    return f"--apconf names a file in the folder conf beside the application: {', '.join(there[:12])}"


def _present(folder: Path, stem: str) -> list[Path]:
    return [path for path in (folder / f"{stem}{ending}" for ending in ENDINGS) if _is_there(path)]


def _is_there(path: Path) -> bool:
    """Whether there is a file. If access is denied, return True, so that reading the file reports why."""
    try:
        return path.is_file()
    except OSError as refused:
        return refused.errno != errno.ENAMETOOLONG


# -- weighing --------------------------------------------------------------------------------------------------------


def _duplicates(group: _Group) -> Iterable[Diagnostic]:
    """Report keys that occur twice in one place. Two values are an error, but on a command line the later one wins."""
    seen: dict[tuple[str, ...], WrittenKey] = {}
    for written in group:
        first = seen.setdefault(written.identity, written)
        if first is not written:
            alike = first.value == written.value or written.source is Source.COMMAND_LINE
            also = f", as {first.key}" if first.key != written.key else ""
            yield Diagnostic(
                "key-duplicated",
                f"{written.key} is set twice; the first is at {first.where}{also}",
                "keep one of the two; now the later one wins",
                written.where,
                Severity.WARNING if alike else Severity.ERROR,
            )


def _weighed(groups: Sequence[_Group]) -> tuple[list[WrittenKey], list[Diagnostic]]:
    """Every key with a value, weakest first; and the faults in final keys and in keys without a value."""
    given: list[WrittenKey] = []
    required: list[WrittenKey] = []
    faults: list[Diagnostic] = []
    finals: dict[tuple[str, ...], list[WrittenKey]] = {}
    for group in groups:
        for written in group:
            final = next((final for final in finals.get(written.folded, ()) if final.touches(written)), None)
            if final is not None:
                faults.append(_held_back(written, final.where))
            else:
                (required if written.value is None else given).append(written)
        for written in group:
            if written.final:
                finals.setdefault(written.folded, []).append(written)
    known: dict[tuple[str, ...], list[WrittenKey]] = {}
    for written in given if required else ():
        known.setdefault(written.folded, []).append(written)
    for written in required:
        alike = known.setdefault(written.folded, [])
        if not any(written.sets_the_same_as(other) for other in alike):
            faults.append(_missing(written))
            alike.append(written)
    return given, faults


def _held_back(written: WrittenKey, final: Where) -> Diagnostic:
    """A fault for setting a final key: an error if the launch itself sets it, a warning if a shared file does."""
    return Diagnostic(
        "key-final",
        f"{written.key} is final at {final}, so the value here has no effect",
        f"remove it here, or remove <final> at {final}",
        written.where,
        Severity.ERROR if written.source >= Source.PACKAGE_FILE else Severity.WARNING,
    )


def _missing(written: WrittenKey) -> Diagnostic:
    """A fault for a key without a value. A malformed key is reported as such: no launch could set it."""
    address = written.address
    if isinstance(address, Malformed):
        return Diagnostic("key-malformed", f"{written.key}: {address.problem}", address.help, written.where)
    help_ = f"write -D {written.key}=…, or set it in a file for --conf"
    problem = f"{written.key} has no value here, so the launch must set one"
    if address is None:
        help_ = f"remove it, unless the application reads it; keys of dagkit begin with one of {', '.join(PREFIXES)}"
        problem = f"{written.key} has no value here"
    return Diagnostic("key-required", problem, help_, written.where)


# -- resolving -------------------------------------------------------------------------------------------------------


def _resolved(given: Sequence[WrittenKey], environment: Mapping[str, str]) -> tuple[Config, list[Diagnostic]]:
    """Every entry with its references resolved. If several sources set a key, only the winner is resolved."""
    winners = {written.identity: written for written in given}
    values: dict[str, Any] = {}
    for written in given:
        values[written.key] = values[canonical(written.key)] = winners[written.identity].value
    references = References(values, environment)
    entries: list[Entry] = []
    faults: list[Diagnostic] = []
    for written in given:
        value, tainted = written.value, False
        if winners[written.identity] is written:
            try:
                value, tainted = references.resolve_key(written.key)
            except Unresolved as unresolved:
                faults.append(unresolved.diagnostic(written.key, written.where))
        else:
            references.used |= names_referred(value)
        shown = shown_instead(written.address, written.key, written.value, tainted=tainted)
        origin = Origin(written.source, written.where, written.key, shown)
        entries.append(Entry(written.key, value, origin))
    config = Config(entries)
    for key in references.used:
        _ = key in config  # mark keys that values refer to as used
    return config, faults
