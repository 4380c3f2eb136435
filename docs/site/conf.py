"""The configuration of Sphinx for the pages of this folder's parent; `build.py` runs it."""

from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer

ROOT = Path(__file__).parents[2]

project = "dagkit"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "dagkit"
html_copy_source = False
myst_heading_anchors = 3
myst_links_external_new_tab = False
nitpicky = True


def _outside(_app: Any, env: Any, node: Any, content: Any) -> Any:
    """Show a link to a file of the repository that is no page as its text."""
    target = str(node.get("reftarget", "")).partition("#")[0]
    here = ROOT / "docs" / Path(env.docname).parent
    return content if target and (here / target).exists() else None


def setup(app: Any) -> None:
    for name in ("layers", "rooms", "mermaid"):  # blocks that no highlighter knows
        app.add_lexer(name, TextLexer)
    app.connect("missing-reference", _outside)
