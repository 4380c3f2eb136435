"""`dagkit new`: a folder with an application and its property file, for what the user has or as an example."""

import contextlib
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import rich_click as click

from dagkit.cli.application.options import spoken
from dagkit.cli.making.examples import SAMPLES, copy_example, descriptions, examples, write_lines
from dagkit.cli.making.found_origin import HOW, origin_of
from dagkit.cli.making.origin import Origin, class_name
from dagkit.cli.terminal.output import Output, WrongUsage, is_terminal, shown_from
from dagkit.errors import RunFailure, printable

_QUESTION = """\
What do you want to read?
  1  files
  2  a topic of Kafka
  3  a table of a database
  4  nothing yet: begin with an example"""

_NO_NAME = ""
"""The value of --example without a name."""


@click.command()
@click.argument("folder", metavar="FOLDER", required=False)
@click.option(
    "--example",
    metavar="NAME",
    is_flag=False,
    flag_value=_NO_NAME,
    help="Copy this example of dagkit, such as word_count; without NAME, list the examples.",
)
@click.option(
    "--from",
    "place",
    metavar="SOURCE",
    help=f"Make an application that reads this, with the types that a look at it finds: {HOW}.",
)
@click.option("--table", metavar="NAME", help="The table of the database that --from names.")
@click.option("--launch", "launches", is_flag=True, help="Also launch it once, in plain Python.")
@spoken
def new(
    *, folder: str | None, example: str | None, place: str | None, table: str | None, launches: bool, output: Output
) -> None:
    """Make a folder with an application and its property file.

    FOLDER must not exist; the application is named after it. On a terminal, the command asks what to read, unless
    --from, --example or --launch is given.
    """
    if example == _NO_NAME:
        _list_examples(output)
        return
    if folder is None:
        raise click.UsageError("Missing argument 'FOLDER'.")
    home = Path(folder)
    _check_options(example, place, launches=launches, as_json=output.as_json)
    if os.path.exists(home):  # noqa: PTH110 - unlike Path, accepts names that no file can have
        raise WrongUsage(f"{printable(folder)!r} exists already; name a folder that does not exist")
    if example is None and place is None and not (launches or output.as_json) and is_terminal(sys.stdin):
        place, table = _ask()
    # The application and its records are two classes of one file.
    row = "Record" if class_name(home.name) == "Row" else "Row"
    origin = None if place is None else origin_of(place, table, row, home)
    try:
        _write(home, example, origin)
    except OSError as refused:
        problem = f"{printable(folder)} cannot be made: {refused.strerror or refused}"
        raise RunFailure(
            problem, "give a folder in a place where this user may write", code="result-unwritable"
        ) from refused
    files = sorted(file.relative_to(home).as_posix() for file in home.rglob("*") if file.is_file())
    if output.as_json:
        output.document("dagkit.new/1", {"folder": folder, "files": files})
        return
    output.result(f"{printable(folder)}: {', '.join(files)}")
    if origin is not None:
        output.message("\n".join([f"reads {printable(origin.what)}", *origin.notes]))
    if launches:
        output.message(f"in {printable(folder)}: dagkit launch app.py --once --reference")
        _launch(home, ("-q",) if output.quiet else ())
    output.message(_next(folder, example, is_own=origin is not None))


def _check_options(example: str | None, place: str | None, *, launches: bool, as_json: bool) -> None:
    if launches and as_json:
        raise click.UsageError("--launch does not go with --json")
    if launches and example in examples() and example not in SAMPLES:
        raise click.UsageError(f"--launch does not go with {example}, which brings no input; see its app.py")
    if example is not None and place is not None:
        raise click.UsageError("--from does not go with --example")


def _ask() -> tuple[str | None, str | None]:
    """Ask what to read: its place, and the table of a database."""
    click.echo(_QUESTION, err=True)
    answer = click.prompt("Number", type=click.IntRange(1, 4), default=4, err=True)
    if answer == 1:
        return click.prompt("Folder or file", err=True), None
    if answer == 2:
        brokers = click.prompt("Broker", default="localhost:9092", err=True)
        return f"kafka://{brokers}/{click.prompt('Topic', err=True)}", None
    if answer == 3:
        url = click.prompt("Database, such as sqlite:///orders.db or postgresql://me@localhost/shop", err=True)
        return url, click.prompt("Table", err=True)
    return None, None


def _write(home: Path, example: str | None, origin: Origin | None) -> None:
    """Write the files of the application."""
    if example is not None:
        copy_example(example, home)
    elif origin is not None:
        home.mkdir(parents=True)
        (home / "app.py").write_text(origin.application(class_name(home.name)), encoding="utf-8")
        (home / "properties.properties").write_text(origin.property_file(), encoding="utf-8")
    else:
        write_lines(home, class_name(home.name))


def _launch(place: Path, options: Sequence[str]) -> None:
    """Launch the new application in its folder, on what its input holds."""
    from dagkit.cli.running.launch import launch  # noqa: PLC0415 - most calls do not launch

    with shown_from(Path.cwd()), contextlib.chdir(place):
        # Not standalone, so that this group prints a failure of the launch, and not click.
        launch.main(
            ["app.py", "--once", "--reference", *options], parent=click.get_current_context(), standalone_mode=False
        )


def _next(folder: str, example: str | None, *, is_own: bool) -> str:
    """The commands to type next. `is_own`: the application reads what the user has."""
    steps = [f"cd {printable(folder)}"]
    if is_own:
        steps += ["dagkit validate app.py", "dagkit launch app.py --once --reference", "ls output"]
    elif example is None:
        if find_spec("pytest") is None:
            steps.append("python -m pip install pytest")
        steps += ["python -m pytest", "dagkit launch app.py --once --reference", "cat output/*"]
    elif example in SAMPLES:
        steps += ["dagkit graph app.py", "dagkit launch app.py --once --reference", "ls -R output"]
    else:
        steps += ["dagkit graph app.py", "dagkit config app.py"]
    return "next:\n" + "\n".join(f"  {step}" for step in steps)


def _list_examples(output: Output) -> None:
    """Print the names of the examples, with the first line of their docstrings."""
    described = descriptions()
    if output.as_json:
        output.document("dagkit.examples/1", {"examples": described})
        return
    width = max(map(len, described), default=0)
    output.result("\n".join(f"{name:{width}}  {text}" for name, text in described.items()))
