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
from dagkit.conf.grammar.names import folded
from dagkit.conf.grammar.property_keys import PREFIXES, Address, Malformed, canonical, is_variable, parse_key
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
    weighed = _Weighed(groups)
    faults += weighed.faults
    config, unresolved = _resolved(weighed, sources.environment)
    return config, faults + unresolved


def files_of(sources: Sources) -> list[Path]:
    """The property files that `load` reads, the weakest first."""
    return [path for _, paths in _places(sources) for path in paths]


# -- gathering -------------------------------------------------------------------------------------------------------


class _Placed:
    """A key in its source, with the data that compares it with other keys."""

    __slots__ = ("address", "bearer", "folded", "identity", "source", "way", "written")

    def __init__(self, source: Source, written: WrittenKey) -> None:
        self.source = source
        self.written = written
        self.address = parse_key(written.key)
        self.identity: tuple[str, ...] = (canonical(written.key),)
        self.bearer: tuple[str, ...] = self.identity
        self.way: tuple[str, ...] = ()
        if isinstance(self.address, Address):
            self.bearer, self.way = self.address.bearer, self.address.way
            identity = self.address.identity
            self.identity = tuple(map(folded, identity)) if is_variable(written.key) else identity
        self.folded = tuple(map(folded, self.bearer))
        """The bearer as environment variables spell it: the index under which related keys are found."""

    def sets_the_same_as(self, other: "_Placed") -> bool:
        """Whether both set the same thing. Names in environment variables compare by their folded form."""
        return len(self.way) == len(other.way) and self.touches(other)

    def touches(self, other: "_Placed") -> bool:
        """Whether one sets the same as the other, or a part of it, or contains it, in any spelling."""
        length = min(len(self.way), len(other.way))
        if is_variable(self.written.key) or is_variable(other.written.key):
            one, two = (tuple(folded(step).replace("_", "") for step in p.way[:length]) for p in (self, other))
            return self.folded == other.folded and one == two
        return self.bearer == other.bearer and self.way[:length] == other.way[:length]


_Group = Sequence[_Placed]
"""The keys of one place, such as a file. Each key should occur in it once."""


def _gathered(sources: Sources) -> tuple[list[_Group], list[Diagnostic]]:
    groups: list[_Group] = []
    faults: list[Diagnostic] = []
    for source, paths in _places(sources):
        files = [read_file(path, _instead_of(source, path)) for path in paths]
        groups.append([_Placed(source, written) for file in files for written in file.written])
        faults += [fault for file in files for fault in file.faults]
    variables = [(name, value) for name, value in sorted(sources.environment.items()) if is_variable(name)]
    groups.append([_Placed(Source.ENVIRONMENT, WrittenKey(name, value, ENVIRONMENT)) for name, value in variables])
    definitions = [WrittenKey(key, value, COMMAND_LINE) for key, value in sources.definitions]
    groups.append([_Placed(Source.COMMAND_LINE, definition) for definition in definitions])
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
    for placed in group:
        written, first = placed.written, seen.setdefault(placed.identity, placed.written)
        if first is not written:
            alike = first.value == written.value or placed.source is Source.COMMAND_LINE
            also = f", as {first.key}" if first.key != written.key else ""
            yield Diagnostic(
                "key-duplicated",
                f"{written.key} is set twice; the first is at {first.where}{also}",
                "keep one of the two; now the later one wins",
                written.where,
                Severity.WARNING if alike else Severity.ERROR,
            )


class _Weighed:
    """Every given key, weakest first; the winners; and the faults in final keys and in keys without a value."""

    def __init__(self, groups: Sequence[_Group]) -> None:
        self.given: list[_Placed] = []
        self.winners: dict[tuple[str, ...], _Placed] = {}
        self.faults: list[Diagnostic] = []
        finals: dict[tuple[str, ...], list[_Placed]] = {}
        required: list[_Placed] = []
        for group in groups:
            for placed in group:
                final = next((final for final in finals.get(placed.folded, ()) if final.touches(placed)), None)
                if final is not None:
                    self.faults.append(_held_back(placed, final.written.where))
                elif placed.written.value is None:
                    required.append(placed)
                else:
                    self.given.append(placed)
                    self.winners[placed.identity] = placed
            for placed in group:
                if placed.written.final:
                    finals.setdefault(placed.folded, []).append(placed)
        known: dict[tuple[str, ...], list[_Placed]] = {}
        for placed in self.given if required else ():
            known.setdefault(placed.folded, []).append(placed)
        for placed in required:
            alike = known.setdefault(placed.folded, [])
            if not any(placed.sets_the_same_as(other) for other in alike):
                self.faults.append(_missing(placed))
                alike.append(placed)


def _held_back(placed: _Placed, final: Where) -> Diagnostic:
    """A fault for setting a final key: an error if the launch itself sets it, a warning if a shared file does."""
    return Diagnostic(
        "key-final",
        f"{placed.written.key} is final at {final}, so the value here has no effect",
        f"remove it here, or remove <final> at {final}",
        placed.written.where,
        Severity.ERROR if placed.source >= Source.PACKAGE_FILE else Severity.WARNING,
    )


def _missing(placed: _Placed) -> Diagnostic:
    """A fault for a key without a value. A malformed key is reported as such: no launch could set it."""
    written, address = placed.written, placed.address
    if isinstance(address, Malformed):
        return Diagnostic("key-malformed", f"{written.key}: {address.problem}", address.help, written.where)
    if address is None:
        help_ = f"remove it, unless the application reads it; keys of dagkit begin with one of {', '.join(PREFIXES)}"
        return Diagnostic("key-required", f"{written.key} has no value here", help_, written.where)
    return Diagnostic(
        "key-required",
        f"{written.key} has no value here, so the launch must set one",
        f"write -D {written.key}=…, or set it in a file for --conf",
        written.where,
    )


# -- resolving -------------------------------------------------------------------------------------------------------


def _resolved(weighed: _Weighed, environment: Mapping[str, str]) -> tuple[Config, list[Diagnostic]]:
    """Every entry with its references resolved. If several sources set a key, only the winner is resolved."""
    values: dict[str, Any] = {}
    for placed in weighed.given:
        key, winner = placed.written.key, weighed.winners[placed.identity].written
        values[key] = values[canonical(key)] = winner.value
    references = References(values, environment)
    entries: list[Entry] = []
    faults: list[Diagnostic] = []
    for placed in weighed.given:
        written, value, tainted = placed.written, placed.written.value, False
        if weighed.winners[placed.identity] is placed:
            try:
                value, tainted = references.resolve_key(written.key)
            except Unresolved as unresolved:
                faults.append(_unresolved(written, unresolved))
        else:
            references.used |= names_referred(value)
        shown = shown_instead(placed.address, written.key, written.value, tainted=tainted)
        origin = Origin(placed.source, written.where, written.key, shown)
        entries.append(Entry(written.key, value, origin, shown is not None, shown))
    config = Config(entries)
    for key in references.used:
        _ = key in config  # mark keys that values refer to as used
    return config, faults


def _unresolved(written: WrittenKey, unresolved: Unresolved) -> Diagnostic:
    return Diagnostic("reference-unresolved", f"{written.key}: {unresolved}", unresolved.help, written.where)
