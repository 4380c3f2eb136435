"""Setting properties of a component: nested, mapped and indexed, in any spelling, each with its origin."""

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from dagkit.api.component import Component
from dagkit.api.configuration import Origin
from dagkit.api.secrets import MASK
from dagkit.conf.grammar.names import bare
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.grammar.property_keys import LONGEST_INDEX, Step, text_of
from dagkit.conf.sources.references import without_secret
from dagkit.conf.values.classes import ClassNotFound
from dagkit.conf.values.conversion import Conversion
from dagkit.conf.values.object_making import set_on, spoken
from dagkit.conf.values.property_types import (
    Field,
    class_in,
    field_named,
    fields_of,
    keeps_secret,
    meant_property,
    plain,
)
from dagkit.errors import Diagnostic
from dagkit.ground.names_of_apex import NEEDLESS_PROPERTIES

ComponentT = TypeVar("ComponentT", bound=Component)

_WHERE_LEDGERS_ARE = (
    "leave the key out: the ledger in the application's folder keeps this, and dt.attr.APPLICATION_PATH names the "
    "folder"
)


@dataclass(frozen=True, slots=True)
class Configured(Generic[ComponentT]):
    """A component with its properties set, their origins, and the settings that failed."""

    component: ComponentT
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """By dotted path, as in the component's `faults`."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Faults in values that cannot be converted. The component's `faults` hold those that it refuses itself."""
    unknown: tuple[tuple[ParsedEntry, Diagnostic], ...] = ()
    """The settings of properties that it does not have."""
    secrets: tuple[ParsedEntry, ...] = ()
    """The settings whose values are secrets by the types of their properties, or may contain some."""


def with_properties(
    component: ComponentT, entries: Sequence[ParsedEntry], owner: str, conversion: Conversion | None = None
) -> Configured[ComponentT]:
    """The component with these properties set, the strongest last. Messages call it `owner`."""
    setter = _Setter(owner, conversion or Conversion())
    root = _Branch()
    for order, entry in enumerate(entries):
        root.plant(entry, order)
    setter.secrets = [entry for entry in entries if keeps_secret(component, entry.path)]
    changed = setter.fields(component, root, ())
    configured = component.configured(changed) if changed else component
    secrets = [entry for entry in entries if entry in setter.secrets or keeps_secret(configured, entry.path)]
    return Configured(configured, setter.origins, tuple(setter.diagnostics), tuple(setter.unknown), tuple(secrets))


@dataclass(slots=True)
class _Branch:
    """The settings of one value and of its parts."""

    entry: ParsedEntry | None = None
    order: int = 0
    """The strength of `entry`: a higher number wins."""
    below: dict[Step, "_Branch"] = field(default_factory=dict)

    def plant(self, entry: ParsedEntry, order: int, depth: int = 0) -> None:
        """Add a setting. A value for the whole replaces earlier settings of its parts."""
        branch = self
        for step in entry.path.steps[depth:]:
            child = branch.below.pop(step, None) or _Branch()
            branch.below[step] = child
            branch = child
        branch.entry, branch.order = entry, order
        branch.below = {}

    def merge(self, other: "_Branch", depth: int) -> None:
        """Merge the settings of the same value under another spelling, at this depth, in order of strength."""
        strongest_last = sorted([*self.ordered(), *other.ordered()], key=lambda pair: pair[0])
        self.entry, self.below = None, {}
        for order, entry in strongest_last:
            self.plant(entry, order, depth)

    def merged(self, depth: int) -> dict[str, tuple[Step, "_Branch"]]:
        """The branches below by their text, with `a` and `(a)` merged, and `[1]` and `.1`."""
        known: dict[str, tuple[Step, _Branch]] = {}
        for step, branch in self.below.items():
            text = text_of(step)
            if text in known:
                known[text][1].merge(branch, depth + 1)
            else:
                known[text] = step, branch
        return known

    def ordered(self) -> Iterator[tuple[int, ParsedEntry]]:
        if self.entry is not None:
            yield self.order, self.entry
        for branch in self.below.values():
            yield from branch.ordered()

    def entries(self) -> Iterator[ParsedEntry]:
        """All settings of the value and of its parts."""
        return (entry for _, entry in self.ordered())


class _Failed:
    """Stands for a value that could not be made. The fault is in the diagnostics."""


_FAILED = _Failed()
Where = tuple[str, ...]


class _Setter:
    """Makes values from branches, and collects their origins and faults."""

    def __init__(self, owner: str, conversion: Conversion) -> None:
        self.owner = owner
        self.conversion = conversion
        self.origins: dict[str, Origin] = {}
        self.diagnostics: list[Diagnostic] = []
        self.unknown: list[tuple[ParsedEntry, Diagnostic]] = []
        self.secrets: list[ParsedEntry] = []
        """The settings whose values must not be quoted."""

    def value(self, wanted: Any, current: Any, branch: _Branch, path: Where) -> Any:
        """The value after applying the settings of the value and of its parts."""
        if branch.entry is not None:
            try:
                current = self.conversion.convert(wanted, branch.entry.value)
            except ClassNotFound as missing:
                return self.refuse(branch.entry, path, str(missing), "class-not-found", missing.help)
            except ValueError as refused:
                return self.refuse(branch.entry, path, str(refused))
            self.origins[".".join(path)] = branch.entry.origin
        return self.nested(wanted, current, branch, path) if branch.below else current

    def nested(self, wanted: Any, current: Any, branch: _Branch, path: Where) -> Any:
        """The value with its parts set."""
        cls = class_in(wanted) or object
        if isinstance(current, str) and isinstance(branch.entry, ParsedEntry) and issubclass(cls, BaseModel):
            current = None
        if current is None and issubclass(cls, BaseModel):
            return self.new(cls, branch, path)
        if isinstance(current, BaseModel):
            return self.model(current, branch, path)
        if isinstance(current, Mapping) or (current is None and issubclass(cls, Mapping)):
            return self.mapping(wanted, current or {}, branch, path)
        if isinstance(current, list | tuple) or (current is None and issubclass(cls, list | tuple | Sequence)):
            return self.sequence(wanted, current or (), branch, path)
        if isinstance(current, type | FunctionType | ModuleType):  # a copy would be the same, shared object
            return self.without_parts(current, branch, path)
        if hasattr(current, "__dict__") or dataclasses.is_dataclass(current):
            return self.plain_object(current, branch, path)
        return self.without_parts(current, branch, path)

    def fields(self, model: BaseModel | type[BaseModel], branch: _Branch, path: Where) -> dict[str, Any]:
        """The new values of a model's fields, by the names of constructor arguments."""
        cls = model if isinstance(model, type) else type(model)
        values: dict[str, Any] = {}
        for found, child in self.by_field(cls, branch, len(path) + 1).values():
            current = None if isinstance(model, type) else getattr(model, found.name, None)
            value = self.value(found.wanted, current, child, (*path, found.name))
            if value is not _FAILED:
                values[found.argument] = value
        return values

    def by_field(self, cls: type[BaseModel], branch: _Branch, depth: int) -> dict[str, tuple[Field, _Branch]]:
        """The branches by field, with several spellings of one field merged."""
        known: dict[str, tuple[Field, _Branch]] = {}
        for step, child in branch.below.items():
            found = field_named(cls, step) if isinstance(step, str) else None
            if found is None:
                self.unknown_field(cls, step, child)
            elif found.name in known:
                known[found.name][1].merge(child, depth)
            else:
                known[found.name] = found, child
        return known

    def unknown_field(self, cls: type[BaseModel], step: Step, branch: _Branch) -> None:
        name = text_of(step)
        owner = self.owner if issubclass(cls, Component) else f"{cls.__name__} of {self.owner}"
        for entry in branch.entries():
            has = f"{cls.__name__} has {', '.join(cls.model_fields) or 'none'}"
            self.is_unknown(entry, f"{owner} has no property {name!r}", meant_property(cls, name, has))

    def is_unknown(self, entry: ParsedEntry, problem: str, help_: str) -> None:
        problem = f"{entry.key}: {problem}"
        self.unknown.append((entry, Diagnostic("property-unknown", problem, help_, entry.origin.where)))

    def new(self, cls: type[BaseModel], branch: _Branch, path: Where) -> Any:
        """A new model from its parts, if there was no value."""
        return self.built(cls, self.fields(cls, branch, path), branch, path)

    def model(self, current: BaseModel, branch: _Branch, path: Where) -> Any:
        changed = self.fields(current, branch, path)
        if isinstance(current, Component):
            return current.configured(changed)
        was_set = current.model_fields_set
        unchanged = {
            f.argument: getattr(current, f.name) for f in fields_of(type(current)).values() if f.name in was_set
        }
        return self.built(type(current), {**unchanged, **changed}, branch, path)

    def built(self, cls: type[BaseModel], arguments: Mapping[str, Any], branch: _Branch, path: Where) -> Any:
        try:
            return cls(**arguments)
        except ValidationError as invalid:
            return self.refuse(_blamed(cls, branch, invalid), path, spoken(invalid))

    def mapping(self, wanted: Any, current: Mapping[Any, Any], branch: _Branch, path: Where) -> Any:
        kinds = get_args(plain(wanted))
        of_key, of_value = kinds if len(kinds) == 2 else (Any, Any)
        changed = dict(current)
        for text, (_, child) in branch.merged(len(path)).items():
            key = self.conversion.convert(of_key, text)
            value = self.value(of_value, changed.get(key), child, (*path, text))
            if value is not _FAILED:
                changed[key] = value
        return changed

    def sequence(self, wanted: Any, current: Sequence[Any], branch: _Branch, path: Where) -> Any:
        kinds = get_args(plain(wanted)) or (Any,)
        changed = list(current)
        for text, (step, child) in sorted(branch.merged(len(path)).items(), key=lambda item: item[0].zfill(12)):
            index = int(text) if text.isdecimal() and len(text) <= LONGEST_INDEX else -1
            if not 0 <= index <= len(changed):
                holds = f"{len(changed)} value{'' if len(changed) == 1 else 's'}"
                for entry in child.entries():
                    self.refuse(entry, path, f"it has {holds}, so there is no [{step}] to set")
                continue
            was = changed[index] if index < len(changed) else None
            value = self.value(kinds[0], was, child, (*path, str(index)))
            if value is not _FAILED:
                changed[index:] = [value, *changed[index + 1 :]]
        return changed

    def plain_object(self, current: Any, branch: _Branch, path: Where) -> Any:
        """A copy of an object that is not a model, with its attributes set."""
        changed = copy.copy(current)
        for step, child in branch.below.items():
            if child.below or child.entry is None:
                self.without_parts(getattr(current, str(step), None), child, (*path, str(step)))
                continue
            try:
                set_on(self.conversion, changed, str(step), child.entry.value)
            except ValueError as refused:
                self.refuse(child.entry, path, str(refused))
            else:
                self.origins[".".join((*path, str(step)))] = child.entry.origin
        return changed

    def without_parts(self, current: Any, branch: _Branch, path: Where) -> Any:
        """Report settings for parts of a value that has no parts."""
        what = "it is not set" if current is None else f"{type(current).__name__} values have no properties"
        needless = set(map(bare, NEEDLESS_PROPERTIES))
        for step, child in branch.below.items():
            help_ = _WHERE_LEDGERS_ARE if bare(str(step)) in needless else f"set {'.'.join(path)} as a whole"
            for entry in child.entries():
                self.is_unknown(entry, f"{what}, so {'.'.join(path)} has no parts to set", help_)
        return current

    def refuse(self, entry: ParsedEntry, path: Where, why: str, code: Any = "property-invalid", help_: str = "") -> Any:
        """Report a value that does not fit."""
        hidden = MASK if entry.origin.shown is None and entry in self.secrets else entry.origin.shown
        shown = _brief(entry.value) if hidden is None else hidden
        why = without_secret(why, entry.value, hidden)
        self.diagnostics.append(
            Diagnostic(
                code,
                f"{'.'.join(path)} of {self.owner} cannot be {shown}: {why}",
                without_secret(help_, entry.value, hidden) or f"fix the value of {entry.key}",
                entry.origin.where,
            )
        )
        return _FAILED


def _blamed(cls: type[BaseModel], branch: _Branch, invalid: ValidationError) -> ParsedEntry:
    """The setting of the first part that does not fit; if no setting here is of such a part, the first one."""
    for error in invalid.errors(include_url=False, include_input=False):
        for step, child in branch.below.items():
            found = field_named(cls, step) if isinstance(step, str) else None
            if found is not None and error["loc"][:1] == (found.argument,):
                return next(child.entries())
    return next(branch.entries())


def _brief(raw: Any) -> str:
    shown = repr(raw)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"
