"""Errors travel between processes, and every code is in the operator's page, once and in order."""

import pickle
import re
from pathlib import Path

import pytest

from dagkit.ledger import (
    LEDGER_CODES,
    BlockNotFound,
    BlockRefused,
    ChainNotFound,
    Fault,
    SequenceTaken,
    StoreError,
    VersionUnreadable,
)

PAGE = Path(__file__).parents[3] / "docs" / "ledger.md"


def test_every_code_is_a_row_of_the_page_in_order_with_its_cause_and_its_repair():
    rows = re.findall(
        r"^\| `([a-z-]+)` \| \S.* \| \S.* \|$", PAGE.read_text("utf-8").partition("## Error codes")[2], re.MULTILINE
    )
    assert rows == list(LEDGER_CODES)


@pytest.mark.parametrize(
    ("code", "kinds"),
    [(1, (BlockRefused, SequenceTaken)), (5, (StoreError,)), (6, (VersionUnreadable, ChainNotFound, BlockNotFound))],
)
def test_an_error_travels_between_processes_and_owns_its_exit_code(code, kinds):
    for kind in kinds:
        error = kind(Fault("block-missing", "it is gone", "look", "c", 3), Fault("link-broken", "it lies", "look"))
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        assert (type(again), again.faults, str(again)) == (kind, error.faults, str(error))
        assert again.exit_code == code


def test_a_fault_says_where_what_and_what_to_do():
    fault = Fault("block-missing", "it is gone", "look for it", "c", 3)
    assert str(fault) == "c: block 3: it is gone [block-missing]\n  help: look for it"
