"""A secret is used, and never shown."""

import pytest
from pydantic import BaseModel, field_validator

from dagkit import Config, Dag, InputOperator
from dagkit.api.configuration import Entry, Origin, Source
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from dagkit.plan import write_plan


class Login(BaseModel):
    user: str = ""
    phrase: str = ""


class Mailbox(InputOperator):
    phrase: str = ""
    login: Login = Login()


def configured(key: str) -> Config:
    return Config([Entry(key, "hunter2", Origin(Source.FILE, None, key), secret=True, shown="${env:PHRASE}")])


@pytest.mark.parametrize("path", ["phrase", "login.phrase"])
def test_a_plan_holds_the_reference_and_not_the_secret(path):
    def draw(dag: Dag, conf: Config) -> None:
        dag.add_operator("mail", Mailbox())

    compilation = compile_application(draw, configured(f"dt.operator.mail.prop.{path}"))
    text = write_plan(compilation.plan)
    assert "hunter2" not in text
    assert "${env:PHRASE}" in text
    assert "hunter2" in repr(compilation.graph.by_name["mail"].operator)


class Locked(InputOperator):
    phrase: int = 0


def test_a_secret_that_is_refused_is_not_shown():
    def draw(dag: Dag, conf: Config) -> None:
        dag.add_operator("mail", Locked())

    with pytest.raises(ApplicationFaults, match=r"mail\.phrase") as raised:
        compile_application(draw, configured("dt.operator.mail.prop.phrase"))
    assert "hunter2" not in str(raised.value)


class Refusing(InputOperator):
    url: str = ""

    @field_validator("url")
    @classmethod
    def _refuses(cls, url: str) -> str:
        raise ValueError("it is refused")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:hunter2@host/db", "'postgresql://**********@host/db'"),
        ("https://host/path?sig=hunter2&se=1", "'https://host/path?**********'"),
        ("https://host/path@2/file", "'https://host/path@2/file'"),
        ("what?", "'what?'"),
    ],
)
def test_a_url_that_is_refused_is_shown_without_its_user_and_its_query(url, shown):
    def draw(dag: Dag, conf: Config) -> None:
        dag.add_operator("mail", Refusing(url=url))

    with pytest.raises(ApplicationFaults) as raised:
        compile_application(draw, Config.of({}))
    assert f"mail.url cannot be {shown}: it is refused" in str(raised.value)
