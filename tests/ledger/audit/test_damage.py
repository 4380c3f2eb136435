"""Whatever happens to the files of a ledger or of an export, every verb ends with its exit code, not in a trace."""

import shutil
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from dagkit.cli.inspecting.ledger import ledger as group
from dagkit.ledger import checkpoint_of
from dagkit.ledger.stores import LocalStore
from tests.ledger.desk import Desk

SCRAPS = [
    *(b"NaN", b"null", b"[", b"{", b"}", b'"', b":", b"\n", b"\xff", b"-1", b"1e999", b"true", b"1.0", b"- ", b"*a"),
    *(b"\\ud800", b"9" * 30, b"[" * 100_000, b'{"a":' * 50_000, b"!!python/object:os.system "),
]


def damaged(folder: Path, chance: Random) -> None:
    """One file is cut, changed, doubled, exchanged, renamed or gone."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    path = chance.choice(files)
    content = path.read_bytes()
    place = chance.randrange(len(content))
    flipped = bytearray(content)
    flipped[place] ^= 1 << chance.randrange(8)
    act = chance.randrange(8)
    if act == 0:
        path.unlink()
    elif act == 1:
        path.rename(path.with_name(chance.choice(["x", f"{10**20 - 1}.json", ".tmp-1-2-3", f"{path.name}x"])))
    else:
        path.write_bytes(
            [
                bytes(flipped),
                content[:place],
                content[:place] + chance.choice(SCRAPS) + content[place + chance.randrange(4) :],
                content[:place] + content,
                chance.choice(files).read_bytes(),
                chance.choice(SCRAPS),
            ][act - 2]
        )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A ledger with a window promised, and its exports in both forms."""
    place = tmp_path_factory.mktemp("whole")
    desk = Desk(LocalStore(place / "app", durable=False))
    for start in (0, 10, 20):
        desk.discover((start, start + 10))
        desk.window(2, consumed=[(start, start + 10)])
    large = b"x" * 9000
    planned = desk.app.plan_next()
    desk.app.append(planned.execute(checkpoint=checkpoint_of(large)), [large], planned=planned)
    desk.discover((30, 40))
    desk.app.promise(desk.app.plan_next(), {"slots": [[30, 40]]})
    for form in ("yaml", "json"):
        CliRunner().invoke(group, ["export", str(place / "app"), str(place / form), "--format", form])
    return place


@pytest.mark.gate(21)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_every_verb_ends_with_its_exit_code(whole, tmp_path, seed):
    chance, app = Random(seed), tmp_path / "app"  # noqa: S311 - chance that can be repeated
    shutil.copytree(whole / "app", app)
    damaged(app, chance)
    out = tmp_path / "out"
    for form in ("yaml", "json"):
        shutil.copytree(whole / form, tmp_path / form)
        damaged(tmp_path / form, chance)
    words = [
        ["ls", app],
        ["show", app, "--json"],
        ["verify", app],
        ["export", app, out],
        ["gc", app, "--repair", "--grace-minutes", 0],
        ["import", tmp_path / "from yaml", tmp_path / "yaml"],
        ["import", tmp_path / "from json", tmp_path / "json"],
    ]
    for said in words:
        answer = CliRunner().invoke(group, [str(word) for word in said])
        assert isinstance(answer.exception, SystemExit | None), (said[0], answer.exception)
        assert answer.exit_code in (0, 1, 5, 6), said[0]
