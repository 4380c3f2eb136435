"""JSON whose objects know their lines, so that faults in them can be reported by line."""

import codecs
import json
import re
from bisect import bisect_left
from functools import cache
from json import decoder, scanner
from typing import Any

from dagkit.conf.formats.written import ParseError, wrong_bytes


class Lines:
    """A text with an index of its line ends, to find line numbers quickly."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def line_of(self, offset: int) -> int:
        """The number, from 1, of the line that contains this offset."""
        return bisect_left(self._ends, offset) + 1


class JsonObject(dict[str, Any]):
    """An object in a JSON text: its pairs, its line, and its duplicate keys."""

    lines: Lines
    start: int
    twice: tuple[str, ...] = ()

    @property
    def line(self) -> int:
        return self.lines.line_of(self.start)

    def line_of(self, key: str) -> int:
        """The line of a key: that of its first occurrence after the start of the object."""
        found = _written(key).search(self.lines.text, self.start)
        return self.line if found is None else self.lines.line_of(found.start())


@cache
def _written(key: str) -> re.Pattern[str]:
    return re.compile(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:")


def read_json(data: bytes) -> Any:
    """The value of a JSON text, with objects as `JsonObject`. Raise `ParseError` if it is not JSON."""
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise wrong_bytes(data, wrong) from wrong
    try:
        return _Decoder(text).decode(text)
    except json.JSONDecodeError as malformed:
        reason = malformed.msg[:1].lower() + malformed.msg[1:]
        raise ParseError(f"it is not JSON: {reason}", "fix the line", malformed.lineno) from malformed
    except RecursionError as deep:
        raise ParseError("it is nested too deeply", "an application needs no more than a few levels") from deep


class _Decoder(json.JSONDecoder):
    """The decoder of the standard library, which here records where objects begin."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines = Lines(text)
        self.parse_object = self._object
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]  # the stubs only know C's

    def _object(self, text_and_end: tuple[str, int], *arguments: Any) -> tuple[JsonObject, int]:
        strict, scan_once, _, _, memo = arguments
        pairs, end = decoder.JSONObject(text_and_end, strict, scan_once, None, list, memo)  # type: ignore[attr-defined]
        found = JsonObject(pairs)
        found.lines, found.start = self.lines, text_and_end[1] - 1
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            found.twice = tuple(key for key in found if keys.count(key) > 1)
        return found, end
