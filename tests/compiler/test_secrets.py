"""A secret is used, and never shown."""

from typing import Self

import pytest
from pydantic import BaseModel, field_validator, model_validator

from dagkit import Config, InputOperator
from dagkit.api.configuration import Entry, Origin, Source
from dagkit.compiler import compile_application
from dagkit.plan import write_plan
from tests.compiler.cast import faults, problems


class Login(BaseModel):
    phrase: str = ""


class Mailbox(InputOperator):
    phrase: str = ""
    number: int = 0
    login: Login = Login()


class Refusing(InputOperator):
    url: str = ""

    @field_validator("url")
    @classmethod
    def _refuses(cls, url):
        raise ValueError("it is refused")


def draw(dag, conf):
    dag.add_operator("mail", Mailbox())


def configured(path):
    key = f"dt.operator.mail.prop.{path}"
    return Config([Entry(key, "hunter2", Origin(Source.FILE, None, key, "${env:PHRASE}"))])


@pytest.mark.parametrize("path", ["phrase", "login.phrase"])
def test_a_plan_holds_the_reference_and_not_the_secret(path):
    compilation = compile_application(draw, configured(path))
    text = write_plan(compilation.plan)
    assert ("hunter2" in text, "${env:PHRASE}" in text) == (False, True)
    assert "hunter2" in repr(compilation.graph.by_name["mail"].operator)


def test_a_secret_that_is_refused_is_not_shown():
    (fault,) = faults(draw, configured("number"))
    assert "mail.number" in fault.problem
    assert "hunter2" not in str(fault)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:hunter2@host/db", "postgresql://**********@host/db"),
        ("https://host/path?sig=hunter2&se=1", "https://host/path?**********"),
        *((plain, plain) for plain in ("https://host/path@2/file", "what?")),
    ],
)
def test_a_url_that_is_refused_is_shown_without_its_user_and_its_query(url, shown):
    told = problems(lambda dag, conf: dag.add_operator("mail", Refusing(url=url)))
    assert told == [f"mail.url cannot be {shown!r}: it is refused"]


class Bound(InputOperator):
    phrase: str = ""
    least: int = 0
    most: int = 9

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"least is {self.least}, and most is {self.most}; the phrase is {self.phrase}")
        return self


@pytest.mark.parametrize(("conf", "shown"), [(configured("phrase"), "${env:PHRASE}"), (None, "")])
def test_a_contradiction_is_explained_without_the_secret_beside_it(conf, shown):
    told = problems(lambda dag, _: dag.add_operator("mail", Bound(least=10)), conf)
    assert told == [f"mail is wrong: least is 10, and most is 9; the phrase is {shown}"]
