"""A restarted application writes on Spark, also behind Spark Connect, what it had written, with one receipt a file."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from dagkit.launching import launch
from dagkit.restarting import Restart
from tests.engine.cast import files_in
from tests.engine.receipts.test_receipts import NAMES, drawn, filled, receipts

pytestmark = [pytest.mark.slow, pytest.mark.spark]

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_an_application_with_receipts_resumes_after_an_earlier_window(tmp_path, session):
    home, place = filled(tmp_path), tmp_path / "app"
    last = launch(drawn(home, parts=False), spark=session, until="idle", path=place).window_id
    assert last > 2
    whole = {path.name: path.read_bytes() for path in files_in(home / "out")}
    assert sorted(receipts(home)) == NAMES
    Restart.planned(str(place), last - 2).perform(NOON)
    assert len(receipts(home)) < len(NAMES)
    again = launch(drawn(home, parts=False), spark=session, until="idle", path=place)
    assert again.window_id > last - 2
    assert {path.name: path.read_bytes() for path in files_in(home / "out")} == whole
    for name, receipt in receipts(home).items():
        written = [line for file in receipt["outputs"] for line in Path(file).read_text().splitlines()]
        assert set((home / "in" / name).read_text().splitlines()) <= set(written)
    assert sorted(receipts(home)) == NAMES
