"""Options that are whole numbers."""

import rich_click as click


class WholeNumber(click.IntRange):
    """A whole number within bounds. Click calls it an integer range in its message about another value."""

    name = "whole number"
