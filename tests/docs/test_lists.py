"""Pages list what the project has: extras, metrics, events, and settings of the clusters that no test runs."""

import re
import tomllib
import zipfile

import pytest
import yaml
from click.testing import CliRunner

from dagkit.backends.spark.session.session_settings import spark_home
from dagkit.cli import main
from dagkit.cli.running.launch import launch
from dagkit.observers.lines import EVENTS
from dagkit.observers.prometheus import ALL, USER
from tests.backends.test_preflight import NEEDED
from tests.docs.fences import ROOT, fences_in
from tests.observers.test_lines import HAPPENINGS

INSTALLING_PAGE = ROOT / "docs/installing.md"
INSTALLING = INSTALLING_PAGE.read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def column_of(table):
    """What stands in backquotes in the first cell of each row, where the first column is called so."""
    rows = INSTALLING.partition(f"| {table} |")[2].splitlines()[2:]
    ended = next(number for number, row in enumerate(rows) if not row.strip().startswith("|"))
    return [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in rows[:ended]]


def test_every_extra_the_least_python_and_what_workers_must_have_is_listed():
    assert sorted(name for names in column_of("Extra") for name in names) == sorted(PROJECT["optional-dependencies"])
    assert f"| Python {PROJECT['requires-python'].removeprefix('>=')} or later |" in INSTALLING
    always, *others = column_of("Package")
    assert sorted(always) == sorted(NEEDED)
    depends_on = {requirement.partition(">")[0] for requirement in PROJECT["dependencies"]}
    assert {name for names in (always, *others) for name in names} <= depends_on


def test_what_the_version_prints_is_shown():
    (shown,) = (fence.text for fence in fences_in(INSTALLING_PAGE) if fence.info == "text")
    assert _without_numbers(CliRunner().invoke(main, ["--version"]).stdout) == _without_numbers(shown)


def _without_numbers(text):
    """Line by line, without what differs between machines."""
    return [re.sub(r"\d+(\.\w+)*| (in C|by numpy).*", "…", line) for line in text.splitlines()]


METRICS = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")


def rows_below(heading, table):
    """The cells of the table under a heading whose first column is called so."""
    section = METRICS.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = section.partition(f"| {table} |")[2].splitlines()[2:]
    end = next((number for number, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:end]]


def test_the_table_of_series_lists_them_all_in_order():
    expected = [[f"`{each.name}`", each.kind, ", ".join(each.labels), each.meaning] for each in ALL]
    *written, user = rows_below("Prometheus", "Series")
    assert written == expected
    assert user[0] == f"`{USER}NAME`"


def test_the_table_of_events_lists_them_with_their_keys():
    written = {cells[0].strip("`"): re.findall(r"`(\w+)`", cells[2]) for cells in rows_below("Lines of JSON", "Event")}
    assert list(written)[: len(EVENTS)] == list(EVENTS.values())
    for event, (_, keys) in HAPPENINGS.items():
        named = list(keys)[:4] if event == "reshaped" else list(keys)
        assert written[event] == named


FENCES = fences_in(ROOT / "docs/clusters.md")
INSTRUCTIONS = {"FROM", "RUN", "COPY", "ENV", "WORKDIR", "USER", "ENTRYPOINT"}
OF_VARIABLES = ("spark.executorEnv.", "spark.kubernetes.executor.secretKeyRef.", "spark.yarn.appMasterEnv.")
"""Beginnings of settings that end with the name of a variable."""
SETTINGS_OF_SPARK = [
    ("spark-core", "internal/config/package$"),
    ("spark-kubernetes", "deploy/k8s/Config$"),
    ("spark-yarn", "deploy/yarn/config/package$"),
]
"""The class files that hold the names of Spark's settings, with their jars."""


def of(name):
    (text,) = (fence.text for fence in FENCES if fence.file_name == name)
    return text


MANIFESTS = list(yaml.safe_load_all(of("kubernetes.yaml")))


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest["kind"])
def test_each_manifest_has_only_fields_of_its_schema(manifest):
    validate = pytest.importorskip("kubernetes_validate", reason="run: pip install kubernetes-validate").validate
    assert validate(manifest, "1.33", strict=True) == "1.33"


def test_the_manifests_fit_together():
    by_kind = {each["kind"]: each for each in MANIFESTS}
    pod = by_kind["Deployment"]["spec"]["template"]
    assert pod["spec"]["serviceAccountName"] == by_kind["ServiceAccount"]["metadata"]["name"]
    assert by_kind["RoleBinding"]["roleRef"]["name"] == by_kind["Role"]["metadata"]["name"]
    assert by_kind["Service"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert by_kind["Deployment"]["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    (driver,) = pod["spec"]["containers"]
    assert set(re.findall(r"\$\((\w+)\)", " ".join(driver["args"]))) <= {each["name"] for each in driver["env"]}


def test_the_driver_is_launched_with_options_of_the_command():
    (driver,) = (each for each in MANIFESTS if each["kind"] == "Deployment")
    dagkit, verb, *words = driver["spec"]["template"]["spec"]["containers"][0]["args"]
    assert (dagkit, verb) == ("dagkit", "launch")
    context = launch.make_context("launch", [*words])
    assert context.params["master"] == "k8s://https://kubernetes.default.svc"
    assert dict(context.params["settings"])["spark.executor.instances"] == "2"


def test_the_container_file_has_known_instructions_and_what_an_executor_starts_with():
    lines = of("spark.dockerfile").replace("\\\n", "").splitlines()
    assert {line.split()[0] for line in lines} == INSTRUCTIONS
    assert "openjdk-17-jre-headless tini" in of("spark.dockerfile"), "the script of Spark's image calls both"


def test_spark_knows_every_setting():
    shown = "".join(fence.text for fence in FENCES if fence.language in ("sh", "yaml", "properties"))
    named = set(re.findall(r"\bspark\.[a-z][\w.]*\w", shown))
    whole = {name for name in named if not name.startswith(OF_VARIABLES)}
    assert len(whole) > 10
    constants = b"".join(_class_file(*each) for each in SETTINGS_OF_SPARK)
    assert [name for name in sorted(whole) if name.encode() not in constants] == []


def _class_file(jar, name):
    (path,) = (spark_home() / "jars").glob(f"{jar}_*.jar")
    with zipfile.ZipFile(path) as archive:
        return archive.read(f"org/apache/spark/{name}.class")
