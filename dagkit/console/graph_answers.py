"""The graph of an application, drawn here: as a document and as SVG, folded if it is large."""

from collections.abc import Collection
from dataclasses import asdict, replace
from functools import lru_cache

from dagkit.plan.model import Plan
from dagkit.render import Picture, physical
from dagkit.render.folding import READABLE, by_stage, closed, in_parts
from dagkit.render.logical import logical_of
from dagkit.render.picture import PICTURE_SCHEMA, View
from dagkit.render.svg import svg


def picture_of(plan: Plan, view: View, opened: Collection[str] = ()) -> Picture:
    """The picture of a plan; a large one is folded: by module, or by stage and step."""
    if view is View.PHYSICAL:
        return closed(in_parts(physical(plan)), opened)
    logical = logical_of(plan)
    if len(closed(logical).boxes) > READABLE:
        logical = in_parts(by_stage(logical, plan))
    return closed(logical, opened)


def document(plan: Plan, view: View, opened: Collection[str]) -> dict[str, object]:
    """The picture as JSON."""
    return {"schema": PICTURE_SCHEMA, **asdict(picture_of(plan, view, opened))}


class Drawings:
    """Draws the pictures of one plan after another; the last ones are kept, because layout takes time."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._draw = lru_cache(maxsize=32)(self._drawn)

    def svg(self, plan: Plan, view: View, opened: Collection[str]) -> str:
        """The picture as SVG without styles, and without a title, which the page shows."""
        if plan is not self._plan:
            self._plan = plan
            self._draw.cache_clear()
        return self._draw(view, frozenset(opened))

    def _drawn(self, view: View, opened: frozenset[str]) -> str:
        assert self._plan is not None, "`svg` sets it"
        return svg(replace(picture_of(self._plan, view, opened), title=""), fits=False)
