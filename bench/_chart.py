"""Charts of the page of results: horizontal bars of medians, with their spread."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from xml.sax.saxutils import escape

NAMESPACE = "http://www.w3.org/2000/svg"
WIDTH, ROW, TOP, MARGIN = 760, 24, 34, 30
NAMES, FIGURES = 250, 60
"""The widths of the columns at the left and at the right of the bars."""
STYLE = (
    "text{font:13px sans-serif;fill:#24292f}.name{text-anchor:end}.title{font-weight:bold}"
    ".dagkit{fill:#1f6feb}.other{fill:#8c959f}.spread{stroke:#24292f;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dagkit{fill:#58a6ff}.other{fill:#6e7681}.spread{stroke:#e6edf3}}"
)


@dataclass(frozen=True, slots=True)
class Bar:
    """What was measured of one contestant."""

    name: str
    figures: Sequence[float]
    """One for each run."""

    @property
    def is_ours(self) -> bool:
        return self.name.startswith("dagkit")


@dataclass(frozen=True, slots=True)
class Chart:
    """The contestants of one comparison."""

    file: str
    """The name of its file, without the suffix."""
    title: str
    """What the length of a bar means, with its unit."""
    bars: Sequence[Bar]

    def svg(self) -> str:
        """The chart as a document of its own, for light and dark pages."""
        width, height = WIDTH + MARGIN, TOP + ROW * len(self.bars) + 8
        longest = max(max(bar.figures) for bar in self.bars)
        scale = (WIDTH - NAMES - FIGURES - 20) / longest
        lines = [
            f'<svg xmlns="{NAMESPACE}" viewBox="{-MARGIN} 0 {width} {height}" width="{width}" role="img">',
            f"<title>{escape(self.title)}</title><style>{STYLE}</style>",
            f'<text class="title" x="{NAMES}" y="20">{escape(self.title)}</text>',
        ]
        for number, bar in enumerate(self.bars):
            lines += _row(bar, TOP + ROW * number, scale)
        return "\n".join([*lines, "</svg>", ""])


def _row(bar: Bar, top: int, scale: float) -> list[str]:
    middle, base = top + ROW / 2, top + ROW / 2 + 4
    value = median(bar.figures)
    least, most = (NAMES + end * scale for end in (min(bar.figures), max(bar.figures)))
    kind, width = "dagkit" if bar.is_ours else "other", value * scale
    return [
        f'<text class="name" x="{NAMES - 8}" y="{base:g}">{escape(bar.name)}</text>',
        f'<rect class="{kind}" x="{NAMES}" y="{top + 4}" width="{width:.1f}" height="{ROW - 8}"/>',
        f'<line class="spread" x1="{least:.1f}" x2="{most:.1f}" y1="{middle:g}" y2="{middle:g}"/>',
        f'<text x="{most + 6:.1f}" y="{base:g}">{value:.{0 if value >= 100 else 1}f}</text>',
    ]
