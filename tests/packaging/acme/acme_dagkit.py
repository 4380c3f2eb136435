"""What a distribution can add to dagkit: an operator, a command, a policy and an observer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from dagkit import InputPort, OutputPort, RowOperator
from dagkit.scaling import Decision, ScalingInputs, ScalingPolicy

NUMBER = 7


class Shout(RowOperator):
    """Writes in capitals."""

    kind = "acme.shout/1"
    input = InputPort(str)
    output = OutputPort(str)

    def process(self, item: str) -> Iterator[str]:
        yield f"{item.upper()}!"


@click.command()
@click.argument("name")
def greet(name: str) -> None:
    """Greet a person."""
    click.echo(f"hello {name}")


class One(ScalingPolicy):
    """One partition, whatever waits."""

    name = "acme-one"

    def decide(self, inputs: ScalingInputs) -> Decision:
        return Decision(1, "one is enough", {})


class Events:
    """Writes the name of each run event to a file."""

    def __call__(self, event: Any) -> None:
        with Path("acme.jsonl").open("a") as file:
            file.write(json.dumps(type(event).__name__) + "\n")


def mute() -> int:
    """No observer."""
    return NUMBER
