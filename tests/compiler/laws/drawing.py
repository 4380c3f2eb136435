"""What the cases of the laws are made of: functions that draw on a Dag, and what the compiler reports of them."""

from tests.compiler.sketches import sketch


class Laws:
    """The cases of some laws: what draws each, and the code and the beginning of each problem, if it breaks a law."""

    def __init__(self):
        self.cases = []

    def reports(self, *expected):
        """Add what a function draws, which breaks a law."""

        def add(draw):
            self.add(draw.__name__.replace("_", " "), draw, *expected)
            return draw

        return add

    def compiles(self, draw):
        """Add what a function draws, which compiles."""
        return self.reports()(draw)

    def add(self, name, draw, *expected):
        self.cases.append((name, draw, expected))

    def sketched(self, name, edges, *expected, **given):
        self.add(name, lambda dag: sketch(edges, dag, **given), *expected)
