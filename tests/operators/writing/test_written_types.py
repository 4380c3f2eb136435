"""A writer without a format is refused if the items of its stream can be neither text nor bytes."""

from dataclasses import dataclass
from typing import Any

import pytest

from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from dagkit_operators import CountByKey, Items, Map, PartWriter, Record, SumByKey
from dagkit_operators.writing.content import may_be_text
from tests.operators.ways import chain


@dataclass(frozen=True)
class Order:
    number: int


TEXTS = [str, bytes, Any, object, Record[str], Record[bytes], Record[Any], str | None, int | bytes, Map.output.payload]
OTHERS = [int, tuple[str, int], Order, Record[Order], Record[int], int | float, dict[str, Any]]


@pytest.mark.parametrize("payload", TEXTS + OTHERS)
def test_what_may_be_text_is_accepted(payload):
    assert may_be_text(payload) == (payload in TEXTS)


LETTERS = Items[str](items=("a", "b"))


def test_pairs_need_a_format():
    pairs = {"Items": LETTERS, "Pairs": Map[str, tuple[str, int]](lambda text: (text, 1)), "Sums": SumByKey()}
    with pytest.raises(ApplicationFaults) as raised:
        compile_application(chain(**pairs, Write=PartWriter(file_path="out")))
    (fault,) = raised.value.diagnostics
    assert fault.code == "port-type-mismatch"
    assert fault.problem.endswith("joins Sums.totals (tuple[str, int]) to Write.input, which cannot take that")
    assert fault.help == "set format to a function that makes text or bytes of an item"
    compile_application(chain(**pairs, Write=PartWriter(file_path="out", format=str)))


def test_counts_need_a_format():
    with pytest.raises(ApplicationFaults, match="set format to a function"):
        compile_application(chain(Items=LETTERS, Count=CountByKey(), Write=PartWriter(file_path="out")))
