"""`dagkit completion`: the script for shell completion."""

import rich_click as click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script for completion in SHELL, as in `eval "$(dagkit completion bash)"`."""
    script = get_completion_class(shell)
    assert script is not None, "click completes for every shell in SHELLS"
    click.echo(script(ctx.find_root().command, {}, "dagkit", "_DAGKIT_COMPLETE").source())
