"""The graph of an application, drawn here: as a document and as SVG, folded if it is large."""

from collections.abc import Callable, Collection
from dataclasses import asdict, replace
from functools import lru_cache, partial

from dagkit.console.tables import Row
from dagkit.plan.model import Plan
from dagkit.render import Picture, physical
from dagkit.render.folding import READABLE, by_stage, closed, in_parts
from dagkit.render.logical import logical_of
from dagkit.render.picture import PICTURE_SCHEMA, View
from dagkit.render.svg import svg


def picture_of(plan: Plan, view: View, opened: Collection[str] = ()) -> Picture:
    """The picture of a plan; a large one is folded: by module, or by stage and step."""
    return closed(_framed(plan, view), opened)


def _framed(plan: Plan, view: View) -> Picture:
    """The picture with the frames by which it is folded."""
    if view is View.PHYSICAL:
        return in_parts(physical(plan))
    logical = logical_of(plan)
    return in_parts(by_stage(logical, plan)) if len(closed(logical).boxes) > READABLE else logical


def places(plan: Plan, view: View) -> list[Row]:
    """The operators in a picture, each with the frames around it, outermost first: once they are open, it is shown."""
    picture = _framed(plan, view)
    frames = {group: [*picture.frames_around(group)][::-1] for group in {box.group for box in picture.boxes}}
    return [{"name": box.name, "about": box.subtitle, "frames": frames[box.group]} for box in picture.boxes]


def document(plan: Plan, view: View, opened: Collection[str]) -> dict[str, object]:
    """The picture as JSON."""
    return {"schema": PICTURE_SCHEMA, **asdict(picture_of(plan, view, opened))}


class Drawings:
    """Draws the pictures of one plan after another; the last ones are kept, because layout takes time."""

    def __init__(self) -> None:
        self._last: tuple[Plan, Callable[[View, frozenset[str], float | None], str]] | None = None

    def svg(self, plan: Plan, view: View, opened: Collection[str], page: float | None = None) -> str:
        """The picture as SVG without styles, and without a title, which the page shows.

        `page` is the width of its place by the height.
        """
        last = self._last
        # By identity: the folder returns the same object until a launch replaces its record, and comparing large plans
        # takes time. Each plan has a cache of its own: a layout may end when another thread has drawn the next plan.
        if last is None or plan is not last[0]:
            self._last = last = plan, lru_cache(maxsize=32)(partial(_drawn, plan))
        return last[1](view, frozenset(opened), page)


def _drawn(plan: Plan, view: View, opened: Collection[str], page: float | None) -> str:
    return svg(replace(picture_of(plan, view, opened), title=""), fits=False, page=page)
