"""A secret is used, and never shown."""

from typing import Self

import pytest
from pydantic import BaseModel, field_validator, model_validator

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


class Bound(InputOperator):
    phrase: str = ""
    least: int = 0
    most: int = 9

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"least is {self.least}, and most is {self.most}; the phrase is {self.phrase}")
        return self


@pytest.mark.parametrize(
    ("of_phrase", "problem"),
    [
        ("hunter2", "mail is wrong: least is 10, and most is 9; the phrase is ${env:PHRASE}"),
        ("", "mail is wrong: least is 10, and most is 9; the phrase is "),
    ],
    ids=["with a secret", "without one"],
)
def test_a_contradiction_is_explained_without_the_secret_beside_it(of_phrase, problem):
    def draw(dag: Dag, conf: Config) -> None:
        dag.add_operator("mail", Bound(least=10))

    with pytest.raises(ApplicationFaults) as raised:
        compile_application(draw, configured("dt.operator.mail.prop.phrase") if of_phrase else None)
    (fault,) = raised.value.diagnostics
    assert fault.problem == problem
