"""References in values, `${…}`, and secrets, which are never shown.

${name}         the value of another key
${env:NAME}     an environment variable, as a secret
${file:PATH}    the content of a file, as a secret
$${name}        the text `${name}` itself
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dagkit.api.secrets import MASK
from dagkit.conf.grammar.names import snake
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.grammar.property_keys import Address, Keyword, Malformed, canonical, parse_key
from dagkit.conf.sources.user_files import regular_bytes
from dagkit.errors import Diagnostic, Where, did_you_mean

LONGEST = 1 << 20
"""The most characters in a resolved value, and bytes in a secret's file. More is a mistake or an attack."""

DEEPEST = 100
"""The greatest length of a chain of references."""

MOST_TAKEN_APART = 3
"""How many references in one value messages replace one by one. The regular expression for more could be slow."""

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
_NO_REFERENCE = re.compile(r"(?<!\$)\$\{(?![^{}]*\})")
_SECRET_ENDS = (
    *("password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential"),
    *("apikey", "accesskey", "privatekey"),
)
"""Endings of words that name a secret, before digits and the s of a plural."""
_SECRET_PAIRS = frozenset({"apikey", "accesskey", "privatekey", "password", "passphrase", "passcode"})
"""Words that may also be written as two words."""
_COUNTED = frozenset({"max", "min", "num", "number", "count", "total", "limit", "per"})
"""Words that mark tokens as a number, not a secret: `max_tokens`."""
_WORD = re.compile(r"[^0-9A-Za-z]+")


class Unresolved(ValueError):
    """A reference that cannot be resolved."""

    def __init__(self, problem: str, help_: str) -> None:
        super().__init__(problem)
        self.help = help_

    def diagnostic(self, key: str, where: Where | None = None) -> Diagnostic:
        """The fault of the key whose value contains the reference."""
        return Diagnostic("reference-unresolved", f"{key}: {self}", self.help, where)


def is_secret_name(name: str) -> bool:
    """Whether a property or an attribute of this name holds a secret: `dbPassword`, `access_token`, `api.key`."""
    written = [word.rstrip("0123456789") for word in _WORD.split(snake(name)) if word]
    words = [word.removesuffix("s") for word in written]
    counted = not _COUNTED.isdisjoint(word.removesuffix("tokens") for word in written)
    return any(
        word.endswith(_SECRET_ENDS) and not (counted and as_written.endswith("tokens"))
        for word, as_written in zip(words, written, strict=True)
    ) or any(f"{one}{two}" in _SECRET_PAIRS for one, two in zip(written, words[1:], strict=False))


def is_secret(address: Address | Malformed | None, key: str) -> bool:
    """Whether a key sets a secret, by the name of the property. The operator's name does not matter."""
    if isinstance(address, Address):
        return not isinstance(address.sets, Keyword) and is_secret_name(str(address.sets))
    return is_secret_name(key)


def shown_instead(address: Address | Malformed | None, key: str, raw: Any, *, tainted: bool = False) -> str | None:
    """What to print instead of a secret: the reference to it, or else a mask. None if the value is not secret.

    `tainted`: whether resolving the value used a secret. An empty text is never secret.
    """
    if raw == "" or not (tainted or mentions_secret(raw) or is_secret(address, key)):
        return None
    return raw if isinstance(raw, str) and "${" in raw else MASK


def with_value(entry: ParsedEntry, value: Any, *, tainted: bool = False) -> ParsedEntry:
    """The entry with its references resolved to this value, and with the text to print if the value is a secret."""
    shown = shown_instead(entry.parsed, entry.key, entry.value, tainted=tainted)
    return replace(entry, value=value, origin=replace(entry.origin, shown=shown))


def without_secret(text: str, raw: Any, shown: str | None) -> str:
    """The sentence with every secret in it replaced by its reference or a mask.

    If the sentence quotes a piece of a secret, return a sentence without details.
    """
    if shown is None or not str(raw):
        return text
    secrets = _secrets_in(raw, shown)
    # Marks stand for the secrets while pieces are searched: a reference such as `${env:TOKEN}` may itself contain a
    # piece.
    for number, (secret, _) in enumerate(secrets):
        text = text.replace(secret, f"\0{number}\0")
    pieces = {piece.casefold() for secret, _ in secrets for piece in _PIECE.findall(secret)}
    if any(piece in text.casefold() for piece in pieces):
        return "the reason is not shown, since it would reveal the secret"
    for number, (_, reference) in enumerate(secrets):
        text = text.replace(f"\0{number}\0", reference)
    return text


# Shorter pieces of a secret occur in any sentence.
_PIECE = re.compile(r"\w{3,}")


def _secrets_in(raw: Any, shown: str) -> list[tuple[str, str]]:
    """The secrets in a value, each with its reference or mask: the values of its references, or the whole."""
    whole = (str(raw), shown)
    references = [found for found in _REFERENCE.finditer(shown) if found[1] is not None]
    # The value has `${` where its source has `$${`, so that the literals around the references would not be found.
    if not references or not isinstance(raw, str) or "$${" in shown:
        return [whole]
    literals = re.split(r"\$\{[^{}]*\}", shown)
    if len(references) > MOST_TAKEN_APART:
        return [whole]
    found = re.fullmatch("(.*?)".join(re.escape(literal) for literal in literals), raw, re.DOTALL)
    if found is None:
        return [whole]
    parts = [(value, one[0]) for value, one in zip(found.groups(), references, strict=True) if value]
    return parts if any(literals) else [whole]


def mentions_secret(value: Any) -> bool:
    """Whether a value refers to the environment or to a file."""
    return any(name.startswith(("env:", "file:")) for name in names_referred(value))


def names_referred(value: Any) -> set[str]:
    """The names in the references of a value, without following them."""
    if isinstance(value, str):
        return {found[1] for found in _REFERENCE.finditer(value) if found[1] is not None} if "${" in value else set()
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return {name for part in parts for name in names_referred(part)}


class References:
    """Resolves references, each key once."""

    def __init__(self, values: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self.values = values
        self.environment = environment
        self.used: set[str] = set()
        """The keys that values referred to."""
        self._resolved: dict[str, tuple[Any, bool]] = {}
        self._under_way: list[str] = []

    def resolve(self, value: Any) -> tuple[Any, bool]:
        """The value with every reference resolved, and whether it contains a secret. Raise `Unresolved`."""
        if isinstance(value, str):
            return self._resolve_text(value)
        if isinstance(value, list):
            parts = [self.resolve(part) for part in value]
            return [part for part, _ in parts], any(secret for _, secret in parts)
        if isinstance(value, Mapping):
            pairs = {key: self.resolve(part) for key, part in value.items()}
            return {key: part for key, (part, _) in pairs.items()}, any(secret for _, secret in pairs.values())
        return value, False

    def resolve_key(self, key: str) -> tuple[Any, bool]:
        """The resolved value of a key. Raise `Unresolved` if its references form a circle, or too long a chain."""
        if key in self._resolved:
            return self._resolved[key]
        if key in self._under_way:
            circle = [*self._under_way[self._under_way.index(key) :], key]
            raise Unresolved(f"the references form a circle: {' -> '.join(circle)}", "give one of them a plain value")
        if len(self._under_way) >= DEEPEST:
            chain = f"{self._under_way[0]} -> {self._under_way[1]} -> …"
            raise Unresolved(f"the chain of references is longer than {DEEPEST}: {chain}", "refer to the last key")
        self._under_way.append(key)
        try:
            value, secret = self.resolve(self.values[key])
        finally:
            self._under_way.pop()
        self._resolved[key] = value, secret
        return self._resolved[key]

    def _resolve_text(self, text: str) -> tuple[Any, bool]:
        if "{%" in text:
            raise Unresolved(
                "it contains a script in {% %}, and dagkit does not run scripts", "write the value itself, or ${name}"
            )
        if "${" not in text:
            return text, False
        broken = _NO_REFERENCE.search(text)
        if broken is not None:
            within = "{" in re.split(r"[}]", text[broken.end() :], maxsplit=1)[0]
            what = "contains another reference, or a brace" if within else "is not closed"
            raise Unresolved(
                f"the reference that begins at character {broken.start() + 1} {what}",
                "write ${name}, with a plain name; $${ is the text ${ itself",
            )
        whole = _REFERENCE.fullmatch(text)
        if whole is not None and whole[1] is not None:
            return self._referred(whole[1])
        secrets: list[bool] = []

        def replacement(found: re.Match[str]) -> str:
            if found[1] is None:
                return "${"
            value, secret = self._referred(found[1])
            secrets.append(secret)
            return _as_text(value)

        resolved = _REFERENCE.sub(replacement, text)
        if len(resolved) > LONGEST:
            raise Unresolved(f"its references resolve to {len(resolved)} characters", f"the limit is {LONGEST}")
        return resolved, any(secrets)

    def _referred(self, name: str) -> tuple[Any, bool]:
        scheme, _, rest = name.partition(":")
        if scheme in _SCHEMES:
            return _SCHEMES[scheme](rest, self.environment), True
        key = name if name in self.values else canonical(name)
        if key not in self.values:
            raise Unresolved(f"${{{name}}} has no value", did_you_mean(name, self.values, _otherwise(name)))
        self.used.add(key)
        value, secret = self.resolve_key(key)
        return value, secret or is_secret(parse_key(key), key)


def _otherwise(name: str) -> str:
    return f"set it with -D {name}=…, or write ${{env:{name}}} for an environment variable" if name else "name a key"


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _from_environment(name: str, environment: Mapping[str, str]) -> str:
    if not name:
        raise Unresolved("${env:} names no variable", "write the name after the colon, as in ${env:HOME}")
    if name not in environment:
        raise Unresolved(f"the environment has no variable {name!r}", f"export {name}=… before the launch")
    return environment[name]


def _from_file(path: str, _: Mapping[str, str]) -> str:
    try:
        # Editors and `echo` end a file with a line break, which belongs to no secret.
        return regular_bytes(path, LONGEST).decode("utf-8").replace("\r\n", "\n").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as refused:
        reason = refused.strerror if isinstance(refused, OSError) else "it is not UTF-8"
        raise Unresolved(
            f"the file {path!r} cannot be read: {reason}", "put the secret there before the launch"
        ) from refused


_SCHEMES: Mapping[str, Callable[[str, Mapping[str, str]], str]] = {"env": _from_environment, "file": _from_file}
