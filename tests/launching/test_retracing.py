"""Lines of files whose blocks were split within windows are traced to the records of their input."""

import pytest

from dagkit import Config
from dagkit.compiler import compile_application
from dagkit.retracing.retrace import trace
from tests.engine.cast import Desk, Hurried, lines_through_filter, some_lines


@pytest.mark.slow
@pytest.mark.parametrize("fused", [True, False])
def test_lines_of_blocks_that_were_split_have_one_source_each(tmp_path, fused):
    text = some_lines(30)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a").write_text(text)
    draw = lines_through_filter(tmp_path, block_size=256, fused=fused)
    desk = Desk(tmp_path, draw, backend=Hurried)
    windows = desk.run().run_state.checkpoint.window
    compilation = compile_application(draw, Config.of({}))
    seen = set()
    for name, content in desk.outputs().items():
        for number, line in enumerate(content.decode().splitlines(), 1):
            traced = trace(compilation, desk.ledger(), str(desk.out / name), number)
            (source,) = traced.sources
            assert (traced.reason, traced.text, source.text) == ("", line, line)
            assert text[source.start : source.end] == f"{line}\n"
            seen.add((source.start, traced.window))
    assert len(seen) == 20
    assert 2 < len({window for _, window in seen}) <= windows
