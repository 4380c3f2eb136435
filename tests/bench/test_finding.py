"""Scans are measured on files that are made for it, judged beside `find`, and written into the page."""

import json
import shutil

import pytest

from bench import finding

QUICK = ["--files", "20", "--rounds", "1", "--seen", "20"]
pytestmark = pytest.mark.skipif(shutil.which("find") is None, reason="it measures beside find")


@pytest.fixture(autouse=True)
def two_folders(monkeypatch):
    monkeypatch.setattr(finding, "IN_FOLDER", 10)


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize(("least", "code"), [(0.0, 0), (10.0**9, 1)])
def test_a_scan_is_judged_by_its_share_of_the_speed_of_find(least, code, monkeypatch, capsys):
    monkeypatch.setattr(finding, "LEAST_OF_FIND", least)
    assert finding.main([*QUICK, "--json"]) == code
    measured = json.loads(capsys.readouterr().out)
    assert measured["files"] == 20
    assert measured["of_find"] == pytest.approx(measured["find"] / measured["first_scan"])
    assert measured["bytes_known"] > 12 + 16
    seen = measured["seen"]
    assert (seen["files"], seen["most_written"]) == (20, len('{"known": ""}') + 20 * 16)


def test_the_page_says_whether_the_bound_holds():
    measured = finding.Measured(
        100, 3, find=1.0, first_scan=1.5, scan_of_files=1.2, scan_of_folders=0.1, bytes_found=9.0, bytes_known=8.0
    )
    seen = finding.Seen(10**6, 2.5, 0.005, megabytes=120.0, written=81.0, most_written=8_200_000)
    assert "at 0.67 it holds" in finding.page(measured, seen)
    assert "| first scan | 1.500 | 15000.00 |" in finding.page(measured, seen)
    assert "The driver takes 120 MB for them, 120 bytes for each" in finding.page(measured, seen)
