"""Every way to change a small ledger that docs/ledger.md promises to detect: `verify` reports each of them."""

from collections.abc import Iterator
from itertools import permutations

import pytest

from dagkit.ledger import ChainBroken, Ledger, LedgerError, checkpoint_of, slice_of
from dagkit.ledger.audit.chain_replay import flaws_of
from dagkit.ledger.audit.kept_heads import heads_in, heads_of
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.chain.contents import lines_hash, lines_of, rows_of
from dagkit.ledger.stores import MemoryStore
from tests.ledger.desk import APPLICATION, SPLITTER, STRANGER, Desk

Contents = dict[str, bytes]


def stored(contents: Contents) -> MemoryStore:
    store = MemoryStore()
    for key, content in contents.items():
        store.create(key, content)
    return store


def codes(contents: Contents) -> list[str]:
    """What opening the ledger or verifying it reports, apart from work that waits."""
    try:
        return [fault.code for fault in verify(Ledger.open(stored(contents))).faults if not fault.is_warning]
    except LedgerError as error:
        return [fault.code for fault in error.faults]


@pytest.fixture(scope="module")
def small():
    desk = Desk()
    desk.discover((0, 10))
    desk.window(2, consumed=[(0, 10)])
    whole = {key: desk.store.get(key) for key in sorted(desk.store._contents)}
    assert codes(whole) == []
    return whole


def chains_of(contents: Contents) -> list[str]:
    return [key for key in contents if key.startswith("ledger/chains/")]


def blocks_of(contents: Contents) -> list[str]:
    return [key for key in chains_of(contents) if "/blocks/" in key]


@pytest.mark.trial
@pytest.mark.slow
def test_every_flipped_byte_of_every_chain_is_reported(small):
    for key in chains_of(small):
        for place, byte in enumerate(small[key]):
            flipped = small[key][:place] + bytes([byte ^ 1]) + small[key][place + 1 :]
            assert codes(small | {key: flipped}), (key, place)


def dropped(contents: Contents) -> Iterator[Contents]:
    for block in blocks_of(contents):
        yield {key: content for key, content in contents.items() if key != block}


def doubled(contents: Contents) -> Iterator[Contents]:
    for block in blocks_of(contents):
        folder, _, name = block.rpartition("/")
        yield contents | {f"{folder}/{int(name.removesuffix('.json')) + 1:020d}.json": contents[block]}


def swapped(contents: Contents) -> Iterator[Contents]:
    for one, other in permutations(blocks_of(contents), 2):
        yield contents | {one: contents[other], other: contents[one]}


def cut_short(contents: Contents) -> Iterator[Contents]:
    for block in blocks_of(contents):
        folder = block.rpartition("/")[0]
        yield {key: c for key, c in contents.items() if key.rpartition("/")[0] != folder or key < block}


@pytest.mark.parametrize("forge", [dropped, doubled, swapped, cut_short], ids=lambda forge: forge.__name__)
def test_every_forged_order_of_blocks_is_reported(small, forge):
    forged = list(forge(small))
    assert len(forged) >= len(blocks_of(small))
    assert [number for number, each in enumerate(forged) if not codes(each)] == []


def test_a_ledger_rewritten_whole_differs_from_its_kept_heads():
    honest, forged = Desk(), Desk()
    honest.discover((0, 10))
    honest.window(2, consumed=[(0, 10)])
    kept = "".join(f"{head}\n" for head in heads_of(honest.reopened_ledger()))
    forged.discover((0, 8))
    forged.window(2, consumed=[(0, 8)])
    assert verify(forged.reopened_ledger()).is_complete
    faults = verify(forged.reopened_ledger(), kept=heads_in(kept)).faults
    assert {(fault.code, fault.chain) for fault in faults} == {
        ("head-differs", SPLITTER),
        ("head-differs", APPLICATION),
    }


def test_kept_heads_stay_in_a_chain_that_grows(desk):
    desk.discover((0, 10))
    kept = heads_of(desk.reopened_ledger())
    desk.window(2, consumed=[(0, 10)])
    assert verify(desk.reopened_ledger(), kept=kept).is_complete


def test_the_commands_print_heads_and_compare_them(run, here, tmp_path):
    kept = tmp_path / "heads.txt"
    kept.write_text(run("heads", "PATH").stdout)
    here.window(2)
    run("verify", "PATH", "--head", kept)
    kept.write_text(kept.read_text().replace("f1620", "f1620" + "0")[:-1])
    refused = run("verify", "PATH", "--head", kept, code=2).output.replace("│", " ")
    assert "line 1 is not a hash" in " ".join(refused.split())
    last = here.app.head
    kept.write_text(f"{last.hash} {last.seq + 1} Word%20count\n{here.root.head.hash} 3 Other\n")
    answer = run("verify", "PATH", "--head", kept, code=1)
    assert "[head-lost]" in answer.output
    assert "[chain-lost]" in answer.output


def test_lines_come_back_and_have_one_text():
    rows = [{"b": 1, "a": "ü\u2028\n"}, [None, 1.5]]
    assert rows_of(lines_of(rows)) == rows
    assert lines_hash(lines_of([{"b": 1, "a": 2}])) == lines_hash(lines_of([{"a": 2, "b": 1}]))
    assert lines_hash(lines_of([1, 2])) != lines_hash(lines_of([12]))


def test_a_logical_hash_that_is_not_of_the_rows_is_noticed(desk):
    content = lines_of([{"a": 1}])
    forged = slice_of(content, 0, 1).model_copy(update={"logical_hash": STRANGER})
    record = desk.root.append(desk.root.plan_next().add_data(forged), [content])
    assert [f.code for f in flaws_of(desk.root, record)] == ["data-damaged"]


@pytest.mark.parametrize("shelf", ["data", "checkpoints"])
def test_a_content_that_was_changed_on_its_shelf_is_noticed(desk, shelf):
    content = lines_of(["x" * 10_000])
    event = {"new_data": slice_of(content, 0, 1)} if shelf == "data" else {"checkpoint": checkpoint_of(content)}
    record = desk.root.append(desk.root.plan_next().add_data(**event), [content])
    key = desk.root.objects.key(shelf, checkpoint_of(content).physical_hash)
    desk.store.replace(key, content[:-2] + b"!\n")
    assert [f.code for f in flaws_of(desk.root, record)] == [f"{shelf.removesuffix('s')}-damaged"]
    if shelf == "data":
        with pytest.raises(ChainBroken, match="has changed"):
            desk.root.data(record)
    desk.store.delete([key])
    assert [f.code for f in flaws_of(desk.root, record)] == [f"{shelf.removesuffix('s')}-missing"]


@pytest.mark.parametrize(
    ("name", "describe", "code"),
    [
        ("new_data", lambda content: slice_of(content, 0, 1), "data-damaged"),
        ("checkpoint", checkpoint_of, "checkpoint-damaged"),
    ],
)
def test_a_size_that_is_not_the_contents_is_noticed(desk, name, describe, code):
    content = lines_of([{"a": 1}])
    wrong = describe(content).model_copy(update={"size": 999})
    record = desk.root.append(desk.root.plan_next().add_data(**{name: wrong}), [content])
    assert [f.code for f in flaws_of(desk.root, record)] == [code]
