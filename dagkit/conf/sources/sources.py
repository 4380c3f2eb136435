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

from dagkit.api.configuration import Config, Source
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.grammar.property_keys import PREFIXES, Malformed, canonical, is_variable
from dagkit.conf.sources.property_files import CHECK_THE_PATH, ENDINGS, read_file
from dagkit.conf.sources.references import References, Unresolved, names_referred, with_value
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
    """The user's home, if it is known. Its folder `.dagkit` may contain a site file."""
    installation: Path | None = None
    """The folder with the site files of this machine."""

    @classmethod
    def here(cls, **launch: Any) -> "Sources":
        """The sources of a launch, with the environment, the user and the installation of this process."""
        installation, home = os.environ.get("DAGKIT_SITE"), os.path.expanduser("~")  # noqa: PTH111 - raises nothing
        return cls(
            environment=dict(os.environ),
            home=None if home == "~" else Path(home),
            installation=Path(installation) if installation else None,
            **launch,
        )


def load(sources: Sources) -> tuple[Config, list[Diagnostic]]:
    """Every setting from every source, the strongest last, and the faults in them."""
    groups, faults = _gathered(sources)
    for group in groups:
        faults += _duplicates(group)
    valued, misset = _weighed(groups)
    config, unresolved = _resolved(valued, sources.environment)
    return config, [*faults, *misset, *unresolved]


def files_of(sources: Sources) -> list[Path]:
    """The property files that `load` reads, the weakest first."""
    return [path for _, paths in _places(sources) for path in paths]


# -- gathering -------------------------------------------------------------------------------------------------------


_Group = Sequence[ParsedEntry]
"""The keys of one place, such as a file. Each key should occur in it once."""


def _gathered(sources: Sources) -> tuple[list[_Group], list[Diagnostic]]:
    groups: list[_Group] = []
    faults: list[Diagnostic] = []
    for source, paths in _places(sources):
        group: list[ParsedEntry] = []
        for path in paths:
            entries, unread = read_file(path, _instead_of(source, path), source)
            group += entries
            faults += unread
        groups.append(group)
    # Sorted, since the order of an environment means nothing: of two spellings of a key the same one always wins.
    variables = [(name, value) for name, value in sorted(sources.environment.items()) if is_variable(name)]
    groups.append([ParsedEntry.of(*pair, ENVIRONMENT, Source.ENVIRONMENT) for pair in variables])
    groups.append([ParsedEntry.of(*pair, COMMAND_LINE, Source.COMMAND_LINE) for pair in sources.definitions])
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
        # The name of the application is a part of `properties-NAME`. If no file can have that name, there is none.
        return refused.errno != errno.ENAMETOOLONG


# -- weighing --------------------------------------------------------------------------------------------------------


def _duplicates(group: _Group) -> Iterable[Diagnostic]:
    """Report keys that occur twice in one place. Two values are an error, but on a command line the later one wins."""
    seen: dict[tuple[str, ...], ParsedEntry] = {}
    for entry in group:
        first = seen.setdefault(entry.identity, entry)
        if first is not entry:
            alike = first.value == entry.value or entry.origin.source is Source.COMMAND_LINE
            also = f", as {first.key}" if first.key != entry.key else ""
            yield Diagnostic(
                "key-duplicated",
                f"{entry.key} is set twice; the first is at {first.origin.where}{also}",
                "keep one of the two; now the later one wins",
                entry.origin.where,
                Severity.WARNING if alike else Severity.ERROR,
            )


def _weighed(groups: Sequence[_Group]) -> tuple[list[ParsedEntry], list[Diagnostic]]:
    """Every key with a value, weakest first; and the faults in final keys and in keys without a value."""
    valued: list[ParsedEntry] = []
    required: list[ParsedEntry] = []
    faults: list[Diagnostic] = []
    finals: dict[tuple[str, ...], list[ParsedEntry]] = {}
    for group in groups:
        for entry in group:
            final = next((final for final in finals.get(entry.folded, ()) if final.touches(entry)), None)
            if final is not None:
                faults.append(_held_back(entry, final.origin.where))
            else:
                (required if entry.value is None else valued).append(entry)
        # Only now: within one place, a final key that is set twice is a duplicate, and not held back.
        for entry in group:
            if entry.final:
                finals.setdefault(entry.folded, []).append(entry)
    # Few launches have a key without a value; the others do not pay for this index.
    known: dict[tuple[str, ...], list[ParsedEntry]] = {}
    for entry in valued if required else ():
        known.setdefault(entry.folded, []).append(entry)
    for entry in required:
        alike = known.setdefault(entry.folded, [])
        if not any(entry.sets_the_same_as(other) for other in alike):
            faults.append(_missing(entry))
            # Two files may leave one key to the launch, which is to be reported once.
            alike.append(entry)
    return valued, faults


def _held_back(entry: ParsedEntry, final: Where | None) -> Diagnostic:
    """A fault for setting a final key: an error if the launch itself sets it, a warning if a shared file does."""
    return Diagnostic(
        "key-final",
        f"{entry.key} is final at {final}, so the value here has no effect",
        f"remove it here, or remove <final> at {final}",
        entry.origin.where,
        Severity.ERROR if entry.origin.source >= Source.PACKAGE_FILE else Severity.WARNING,
    )


def _missing(entry: ParsedEntry) -> Diagnostic:
    """A fault for a key without a value. A malformed key is reported as such: no launch could set it."""
    if isinstance(entry.parsed, Malformed):
        problem = f"{entry.key}: {entry.parsed.problem}"
        return Diagnostic("key-malformed", problem, entry.parsed.help, entry.origin.where)
    help_ = f"write -D {entry.key}=…, or set it in a file for --conf"
    problem = f"{entry.key} has no value here, so the launch must set one"
    if entry.parsed is None:
        help_ = f"remove it, unless the application reads it; keys of dagkit begin with one of {', '.join(PREFIXES)}"
        problem = f"{entry.key} has no value here"
    return Diagnostic("key-required", problem, help_, entry.origin.where)


# -- resolving -------------------------------------------------------------------------------------------------------


def _resolved(valued: Sequence[ParsedEntry], environment: Mapping[str, str]) -> tuple[Config, list[Diagnostic]]:
    """Every entry with its references resolved. If several sources set a key, only the winner is resolved."""
    winners = {entry.identity: entry for entry in valued}
    values: dict[str, Any] = {}
    # A reference may spell the key as any of its sources does; it gets the value that wins.
    for entry in valued:
        values[entry.key] = values[canonical(entry.key)] = winners[entry.identity].value
    references = References(values, environment)
    entries: list[ParsedEntry] = []
    faults: list[Diagnostic] = []
    for entry in valued:
        value, tainted = entry.value, False
        if winners[entry.identity] is entry:
            try:
                value, tainted = references.resolve_key(entry.key)
            except Unresolved as unresolved:
                faults.append(unresolved.diagnostic(entry.key, entry.origin.where))
        else:
            # Without resolving: the variable of a weaker source may not be set here. The keys it names are in use.
            references.used |= names_referred(value)
        entries.append(with_value(entry, value, tainted=tainted))
    config = Config(entries)
    for key in references.used:
        _ = key in config  # mark keys that values refer to as used
    return config, faults
