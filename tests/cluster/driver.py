"""Launches an application: `driver.py APPLICATION MASTER PATH WINDOW KEY=VALUE…`; MASTER is `-` for none.

It prints the windows that start and that are committed, and before WINDOW waits for a line.
"""

import sys
from pathlib import Path

from apps.line_filter.app import LineFilter
from apps.word_count.app import WordCount
from dagkit.conf.sources.sources import Sources, load
from dagkit.engine.record.run_events import Committed, Failed, RunEvent, Started
from dagkit.launching import Machine, launch
from tests.java import quick_java

HOME = Path(__file__).parents[2] / "apps"
APPLICATIONS = {"line_filter": LineFilter, "word_count": WordCount}


def cluster_settings() -> dict[str, str]:
    """Spark's settings for executors on this machine that live for some minutes only."""
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.extraJavaOptions": quick_java(),
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
    }


def run(name: str, machine: Machine, path: str | Path, pause: int, definitions: list[str]) -> None:
    """Launch an application with its own property file until all input is processed."""

    def watch(event: RunEvent) -> None:
        match event:
            case Started(window_id=window):
                say(f"started {window}")
                if window == pause:
                    sys.stdin.readline()
            case Committed(window_id=window):
                say(f"committed {window}")
            case Failed(message=message):
                say(f"failed {message}")

    application = APPLICATIONS[name]
    pairs = [(key, value) for key, _, value in (each.partition("=") for each in definitions)]
    conf, faults = load(Sources(application=application.__name__, folder=HOME / name, definitions=pairs))
    assert not faults
    launch(application(), conf, until="once", machine=machine, path=path, durable=False, observers=[watch])


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    name, master, path, pause, *definitions = sys.argv[1:]
    settings = {} if master.startswith("sc:") else cluster_settings()
    run(name, Machine(master=None if master == "-" else master, settings=settings), path, int(pause), definitions)
