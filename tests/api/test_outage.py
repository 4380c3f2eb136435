"""Servers that do not answer: what is known of them while the process waits."""

import gc

from dagkit.api.outage import Outage, present_outages


def present(name: str) -> list[str]:
    """What this process waits for, of the servers of this test."""
    return [sentence for sentence in present_outages() if sentence.startswith(name)]


def test_an_outage_is_present_from_the_first_failure_to_the_answer() -> None:
    now = [0.0]
    later, first = (Outage(f"present {name}", lambda: now[0]) for name in ("B", "A"))
    assert present("present") == []
    first.failed("refused")
    now[0] = 5.0
    first.failed("reset")
    later.failed("closed")
    assert present("present") == [
        "present A has not answered for 5 s: reset",
        "present B has not answered for 0 s: closed",
    ]
    first.is_over()
    assert present("present") == ["present B has not answered for 0 s: closed"]


def test_an_outage_that_nothing_asks_about_any_longer_is_forgotten() -> None:
    now = [0.0]
    kept, dropped = (Outage(f"forgotten {name}", lambda: now[0]) for name in ("A", "B"))
    for outage in (kept, dropped):
        outage.failed("refused")
    del dropped, outage
    gc.collect()
    assert present("forgotten") == ["forgotten A has not answered for 0 s: refused"]
    now[0] = 1000.0
    assert present("forgotten") == []
