"""A chain that was ever named must be there: nothing that is missing, swapped, emptied or old is begun again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore.store
import pytest

from dagkit import Dag
from dagkit.engine.program.points import Point
from dagkit.engine.record.journal import PIECES_SCHEMA
from dagkit.ledger import DatasetKind, Ledger, LedgerError
from dagkit.ledger.application_ledger import folder_of
from dagkit.ledger.audit.presence import refuse_missing
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.chain.log import HEADS
from dagkit.ledger.format.recorded_work import WORK_SCHEMA
from dagkit.ledger.format.segment import SEGMENT_SIZE
from dagkit.ledger.stores import LocalStore, MemoryStore, Store
from dagkit.ledger.stores.bucket import BucketStore
from dagkit.testing.crashes import Crash, CrashAfter
from tests.engine.cast import Collect, Desk, Script
from tests.ledger.desk import remark

Contents = dict[str, bytes]
APPLICATION = "numbers"


def application(looks: int, *names: str) -> Callable[[Dag, Any], None]:
    """Two inputs, or those named, each of which finds something in each look."""

    def draw(dag: Dag, conf: object) -> None:
        for name in names or ("left", "right"):
            script = dag.add_operator(name, Script(looks=((1, 2), (3,), (4, 5))[:looks]))
            dag.add_stream(f"{name}-numbers", script.out, dag.add_operator(f"{name}-collect", Collect()).input)

    return draw


def run(home: Path, store: Store, looks: int, **given: Any) -> None:
    Desk(home, application(looks)).run(ledger=Ledger.create(store), **given)


def application_of(store: Store) -> str:
    (name,) = {*Ledger.open(store).names()} - {"left", "right"}
    return name


def built(home: Path, *, packed: bool) -> tuple[Contents, Contents]:
    """A ledger after one launch, and after another one."""
    store = MemoryStore()
    run(home, store, 1)
    if packed:
        ledger = Ledger.open(store)
        for each in map(ledger.chain, ledger.names()):
            schema = WORK_SCHEMA if each.kind is DatasetKind.ROOT else PIECES_SCHEMA
            while each.head.seq < SEGMENT_SIZE:
                each.append(remark(str(each.head.seq), schema))
    before = dict(store._contents)
    run(home, store, 2)
    return before, dict(store._contents)


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory):
    """By whether it is packed: a ledger, how it was a launch ago, and that of another application."""
    homes = tmp_path_factory.mktemp
    return {
        packed: (*built(homes("one"), packed=packed), built(homes("two"), packed=packed)[1]) for packed in (False, True)
    }


# ---- what happens to a folder


def chain(name: str) -> str:
    return f"{folder_of(name)}/"


def without(contents: Contents, *prefixes: str) -> Contents:
    return {key: value for key, value in contents.items() if not key.startswith(prefixes)}


def under(contents: Contents, prefix: str, other: str) -> Contents:
    """What lies under one prefix, as it lies under another one."""
    return {other + key.removeprefix(prefix): value for key, value in contents.items() if key.startswith(prefix)}


Damage = Callable[[Contents, Contents, Contents, str], Contents]


def deleted(*parts: str) -> Damage:
    return lambda now, before, foreign, name: without(now, *(chain(name) + part for part in parts))


def replaced(now: Contents, other: Contents, name: str) -> Contents:
    return {**without(now, chain(name)), **under(other, chain(name), chain(name))}


def swapped(now: Contents, before: Contents, foreign: Contents, name: str) -> Contents:
    other = "left" if name != "left" else "right"
    exchanged = {**under(now, chain(name), chain(other)), **under(now, chain(other), chain(name))}
    return {**without(now, chain(name), chain(other)), **exchanged}


missing, blocks_deleted = deleted(""), deleted("blocks/", "segments/")
DAMAGES: dict[str, tuple[Damage, str]] = {
    "missing": (missing, "chain-lost"),
    "blocks deleted": (blocks_deleted, "chain-lost"),
    "swapped": (swapped, "chain-swapped"),
    "of another application": (lambda now, before, foreign, name: replaced(now, foreign, name), "chain-swapped"),
    "older": (lambda now, before, foreign, name: replaced(now, before, name), "head-lost"),
    "all chains missing": (lambda now, *_: without(now, "ledger/chains/"), "chain-lost"),
    "ledger missing": (lambda now, *_: without(now, "ledger/"), "chain-lost"),
}

# ---- where a ledger is kept


def place(layout: str, tmp_path: Path) -> Store:
    in_bucket = layout == "object store"
    return BucketStore(obstore.store.MemoryStore()) if in_bucket else LocalStore(tmp_path / "app", durable=False)


@pytest.fixture(params=["loose blocks", "segments", "object store"])
def layout(request):
    return request.param


@pytest.fixture
def damaged(layout, ledgers, tmp_path):
    """Makes a store of the layout with a ledger to which that happened; gives it, and which chain it happened to."""

    def make(damage: Damage, victim: str, *, remembered: bool = True) -> tuple[Store, str]:
        before, now, foreign = ledgers[layout == "segments"]
        whole = MemoryStore()
        whole._contents = now
        name = application_of(whole) if victim == APPLICATION else victim
        contents = damage(now, before, foreign, name)
        store = place(layout, tmp_path)
        for key, content in (contents if remembered else without(contents, f"{HEADS}/")).items():
            store.replace(key, content)
        if isinstance(store, LocalStore) and damage is blocks_deleted:
            (store.root / chain(name) / "blocks").mkdir(parents=True, exist_ok=True)
        return store, name

    return make


def contents_of(store: Store, folder: str = "") -> Contents:
    inner = f"{folder}/" if folder else ""
    found = {f"{inner}{name}": store.get(f"{inner}{name}") for name in store.names(folder)}
    for name in store.folders(folder):
        found.update(contents_of(store, f"{inner}{name}"))
    return found


def refusal(act: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(LedgerError) as caught:
        act()
    return caught.value.code, str(caught.value)


def verified(store: Store) -> None:
    """Raise what the verifier finds; whatever that is, the ledger is not complete."""
    verdict = verify(Ledger.open(store))
    assert not verdict.is_complete
    assert not verdict.is_valid
    raise LedgerError(*(fault for fault in verdict.faults if not fault.is_warning))


# ---- the tests


def refused_by_both(store: Store, tmp_path: Path, looks: int = 3) -> list[tuple[str, str]]:
    """What the verifier and a launch say, which change nothing."""
    there = contents_of(store)
    refusals = [refusal(lambda: verified(store)), refusal(lambda: run(tmp_path, store, looks))]
    assert contents_of(store) == there
    return refusals


@pytest.mark.gate(8)
@pytest.mark.parametrize("victim", ["left", APPLICATION])
@pytest.mark.parametrize(("damage", "code"), DAMAGES.values(), ids=DAMAGES)
def test_the_verifier_and_a_launch_name_the_chain_and_change_nothing(damaged, tmp_path, damage, code, victim):
    store, name = damaged(damage, victim)
    (found, problem), (refused, words) = refused_by_both(store, tmp_path)
    assert (found, name in problem, refused, name in words) == (code, True, code, True)
    assert "restore" in words
    assert len(words.splitlines()) == len({*words.splitlines()}), "each fault is said once"


@pytest.mark.gate(4)
@pytest.mark.parametrize(
    ("damage", "code", "victim"),
    [*((*each, "left") for each in [*DAMAGES.values()][:5]), (missing, "chain-lost", APPLICATION)],
    ids=[*[*DAMAGES][:5], "application missing"],
)
def test_a_chain_is_missed_without_heads_too(damaged, tmp_path, damage, code, victim):
    """As far as chains know each other: the application's chain declares and consumed its inputs."""
    store, name = damaged(damage, victim, remembered=False)
    for said, words in refused_by_both(store, tmp_path):
        assert (said, victim == APPLICATION or name in words) == (code, True)


@pytest.mark.gate(2)
def test_a_folder_that_is_whole_goes_on(damaged, tmp_path):
    store, _ = damaged(lambda now, *_: now, "left")
    run(tmp_path, store, 3)
    assert verify(Ledger.open(store)).is_complete


def test_a_folder_without_heads_goes_on_and_is_guarded_from_then_on(damaged, tmp_path):
    store, name = damaged(lambda now, *_: now, APPLICATION, remembered=False)
    run(tmp_path, store, 2)
    assert {*store.names(HEADS)} == {"left", "right", folder_of(name).rpartition("/")[2]}


def test_an_input_that_is_older_than_a_planned_window_is_refused(tmp_path):
    """The window was planned and not committed; only its plan names the input's last block."""
    store = MemoryStore()
    run(tmp_path, store, 1)
    before = dict(store._contents)
    with pytest.raises(Crash):
        run(tmp_path, store, 2, probe=CrashAfter(Point.STAGED))
    store._contents = without(replaced(store._contents, before, "left"), f"{HEADS}/")
    for code, words in refused_by_both(store, tmp_path, 2):
        assert (code, "a planned window" in words) == ("head-lost", True)


def test_an_earlier_input_is_missed_by_the_verifier(tmp_path):
    """The application reads it no more; what it consumed of it is in the output all the same."""
    store = MemoryStore()
    run(tmp_path, store, 1)

    Desk(tmp_path, application(2, "right")).run(ledger=Ledger.create(store))
    assert verify(Ledger.open(store)).is_complete
    store._contents = without(store._contents, chain("left"), f"{HEADS}/")
    assert refusal(lambda: verified(store))[0] == "chain-lost"


@pytest.mark.slow
def test_what_is_read_to_find_all_chains_there_is_the_same_at_every_length(tmp_path):
    store, counts = MemoryStore(), []
    for looks in (1, 2, 3):
        run(tmp_path, store, looks)
        ledger = Ledger.open(store)
        refuse_missing(ledger)
        counts.append(sum(ledger.chain(name).log.blocks_read for name in ledger.names()))
        for each in map(ledger.chain, ["left", "right"]):
            for number in range(100):
                each.append(remark(str(number)))
    assert len({*counts}) == 1
    assert counts[0] <= 3 * 5, "the end of each chain, one transform, and a block of each input"
