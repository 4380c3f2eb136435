"""An export that was altered, or that no export writes, is refused; names of chains and of its files never clash."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dagkit.ledger import Ledger, slice_of
from dagkit.ledger.exchange.manifests import export, import_into
from dagkit.ledger.stores import MemoryStore
from tests.cases import cases
from tests.ledger.desk import APPLICATION, SPLITTER, code_of
from tests.processes import run_program

DEEP = 100_000


def import_of(folder: Path, into: Ledger | None = None) -> Callable[[], object]:
    target = into or Ledger.create(MemoryStore())
    return lambda: import_into(target, folder)


@cases(
    "change",
    ("more", lambda c: {"blocks": c["blocks"] + 1}),
    ("fewer", lambda c: {"blocks": c["blocks"] - 1}),
    ("a text", lambda c: {"blocks": str(c["blocks"])}),
    ("a fraction", lambda c: {"blocks": float(c["blocks"])}),
    ("another kind", lambda c: {"kind": "Derivative"}),
    ("another file", lambda c: {"file": f"chains/../{c['file']}"}),
)
def test_an_export_whose_list_was_altered_is_refused_and_leaves_nothing(here, tmp_path, change):
    export(here.ledger, tmp_path / "out")
    path, target = tmp_path / "out" / "export.json", Ledger.create(MemoryStore())
    document = json.loads(path.read_text())
    document["chains"][0].update(change(document["chains"][0]))
    path.write_text(json.dumps(document))
    assert code_of(import_of(tmp_path / "out", target)) == "manifest-unreadable"
    assert target.names() == []


@pytest.mark.parametrize(
    ("part", "field", "value", "code"),
    [
        *(((), "version", value, "version-unreadable") for value in (True, 1.0, "1")),
        *(((), "kind", value, "manifest-unreadable") for value in (None, "metadatablock")),
        *((("content",), "sequenceNumber", value, "manifest-unreadable") for value in (1.0, True)),
    ],
)
def test_a_manifest_that_is_written_otherwise_is_refused(here, tmp_path, *, part, field, value, code):
    export(here.ledger, tmp_path / "out", "json")
    path = next(tmp_path.glob(f"out/**/{APPLICATION}.json"))
    found = [json.loads(line) for line in path.read_text().splitlines()]
    manifest = found[1]
    for name in part:
        manifest = manifest[name]
    if value is None:
        del manifest[field]
    else:
        manifest[field] = value
    path.write_text("".join(json.dumps(d) + "\n" for d in found))
    assert code_of(import_of(tmp_path / "out")) == code


AT = "systemTime: '2024-01-01T00:00:00Z'"


@cases(
    "change",
    ("an alias", lambda text: text.replace("version: 1\n", "version: &v 1\n").replace("Number: 1\n", "Number: *v\n")),
    ("a name said twice", lambda text: text.replace("version: 1\n", "version: 2\nversion: 1\n")),
    ("a time that is no text", lambda text: text.replace(AT, AT.replace("'", ""))),
    ("nested deeply", lambda _: "- " * 2000),
)
def test_yaml_that_no_export_writes_is_refused(here, tmp_path, change):
    export(here.ledger, tmp_path / "out")
    path = next(tmp_path.glob(f"out/**/{SPLITTER}.yaml"))
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text
    assert code_of(import_of(tmp_path / "out")) in ("manifest-unreadable", "version-unreadable")


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_manifests_nested_without_end_do_not_end_the_process(here, tmp_path, form):
    """In a process of its own: nesting in YAML used to overflow the stack of C."""
    export(here.ledger, tmp_path / "out", form)
    next(tmp_path.glob(f"out/**/{SPLITTER}.{form}")).write_text("[" * DEEP + "]" * DEEP)
    words = [sys.executable, "-m", "dagkit.cli", "ledger", "import", str(tmp_path / "copy"), str(tmp_path / "out")]
    answer = run_program(words, check=False)
    assert answer.returncode == 1
    assert "[manifest-unreadable]" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_chains_may_be_named_as_files_of_an_export_are(tmp_path, form):
    ledger = Ledger.create(MemoryStore())
    names = ["a", "a.json", "a.yaml", "chains", "contents", "data", "export", "export.json"]
    large = b"x" * 10_000
    for name in names:
        planned = ledger.root(name).plan_next()
        ledger.root(name).append(planned.add_data(slice_of(large, 0, 1)), [large], planned=planned)
    export(ledger, tmp_path, form)
    other = Ledger.create(MemoryStore())
    import_into(other, tmp_path)
    assert other.names() == names
    assert [other.chain(n).head for n in names] == [ledger.chain(n).head for n in names]


def test_an_export_to_where_nothing_can_be_written_is_said(run, tmp_path):
    (tmp_path / "file").write_text("x")
    assert "[store-" in run("export", "PATH", tmp_path / "file" / "out", code=5).stderr
