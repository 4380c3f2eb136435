"""The formats in which a picture can be had, by the names that the command line knows."""

from collections.abc import Callable, Mapping
from typing import Literal, get_args

from dagkit.render.content import MANY
from dagkit.render.dot import dot
from dagkit.render.engines import draw_dot
from dagkit.render.mermaid import mermaid
from dagkit.render.picture import Picture, to_json
from dagkit.render.svg import svg
from dagkit.render.text import text

Format = Literal["dot", "svg", "png", "pdf", "mermaid", "text", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
BINARY: frozenset[Format] = frozenset({"png", "pdf"})
"""Not to be written to a terminal."""

SHARP = 160
"""Dots per inch of a PNG for a slide; a picture of many boxes is large enough as it is."""

_WRITERS: Mapping[str, Callable[[Picture], str]] = {
    "dot": dot,
    "svg": svg,
    "mermaid": mermaid,
    "text": text,
    "json": to_json,
}


def render(picture: Picture, form: Format) -> bytes:
    """The picture in a format, text as UTF-8. Raises `DrawingFailed` where nothing installed can draw it."""
    if form in _WRITERS:
        return _WRITERS[form](picture).encode()
    sharp = form == "png" and len(picture.boxes) <= MANY
    return draw_dot(dot(picture, dots_per_inch=SHARP if sharp else None), form)
