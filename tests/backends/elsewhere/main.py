"""Runs windows of the application beside it at a master, and prints what was counted: `main.py MASTER MARK WORD…`."""

import json
import sys

from hearing import is_heard  # beside this file
from words import draw  # beside this file

from dagkit import Batch
from dagkit.backends.spark import SparkBackend, session_at
from dagkit.compiler import compile_application
from dagkit.engine.worker.outbox import Outbox
from dagkit.engine.worker.protocol import WindowTask


def main(master: str, mark: str, *words: str) -> None:
    compilation = compile_application(lambda dag, _: draw(dag, mark, is_heard))
    session = session_at(master)
    backend = SparkBackend(compilation, session)
    state = {}
    for window in (1, 2):
        outbox = Outbox(0)
        for target in backend.program.sources["words"]["out"]:
            outbox.channel(target).batch(Batch.of(list(words)))
        answer = backend.run(WindowTask(window, tuple(outbox.rest()), state))
        state = {(report.level, report.slot): report.state for report in answer.reports}
    kept = [own["counts"]["counts"] for own in state.values() if "counts" in own]
    counts = {json.loads(key): number for one in kept for key, (number, _) in one.items()}
    zipped = all(".zip" in own["shouts"]["dagkit_at"] for own in state.values() if "shouts" in own)
    slots = [[report.level, report.slot] for report in answer.reports]
    sys.stdout.write(json.dumps({"counts": counts, "slots": sorted(slots), "zipped": zipped}) + "\n")
    backend.close()
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
