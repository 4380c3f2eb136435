"""The parts of a run: each owns its fields of a checkpoint, and the loop knows none of them."""

import ast
from pathlib import Path

from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.run import loop as loops
from tests.engine.cast import Collect, Desk, Script, chain

OF_THE_COMMITTER = {"format", "window", "launched", "began", "reported"}
OF_EARLIER_VERSIONS = {"watermarks"}
ONLY_IF_WANTED = {"receipts", "receipted"}
KNOWN = {"in_flight", "run_part", "run_state"}
"""The modules of the room of the parts that the loop and the committer may import: no part is among them."""


def test_each_field_of_a_checkpoint_is_computed_by_one_part(tmp_path):
    loop = Desk(tmp_path, chain(script=Script(looks=((1,),)), collect=Collect())).loop()
    computed: list[str] = []
    for part in loop.parts:

        def after(ended, saved, compute=part.after):
            fields = compute(ended, saved)
            computed.extend(fields)
            return fields

        part.after = after
    loop.run()
    assert loop.checkpoint.window == 1
    assert sorted(computed) == sorted(
        Checkpoint().model_dump().keys() - OF_THE_COMMITTER - OF_EARLIER_VERSIONS - ONLY_IF_WANTED
    )


def test_the_loop_and_the_committer_import_no_part():
    room = Path(loops.__file__).parent
    imported = {
        statement.module.removeprefix("dagkit.engine.parts.")
        for name in ("loop.py", "commit.py")
        for statement in ast.walk(ast.parse((room / name).read_text(encoding="utf-8")))
        if isinstance(statement, ast.ImportFrom) and statement.module.startswith("dagkit.engine.parts.")
    }
    assert imported <= KNOWN
