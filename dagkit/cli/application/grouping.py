"""Click as the commands use it: options that are whole numbers, and groups of commands with a default."""

from typing import Any

import rich_click as click

from dagkit.errors import near


class WholeNumber(click.IntRange):
    """A whole number within bounds. Click calls it an integer range in its message about another value."""

    name = "whole number"


class DefaultGroup(click.RichGroup):
    """Calls the command `default` if the first argument is no command and no misspelling of one."""

    def __init__(self, *args: Any, default: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if first and not first.startswith("-") and first not in self.commands and near(first, self.commands) is None:
            args = [self.default, *args]
        return super().parse_args(ctx, args)
