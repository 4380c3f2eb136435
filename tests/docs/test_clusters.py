"""The recipes of `docs/clusters.md` that no test runs: what they name exists."""

import re
import zipfile

import pytest
import yaml

from dagkit.backends.spark.session.session_settings import spark_home
from dagkit.cli.running.launch import launch
from tests.docs.fences import ROOT, fences_in

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
