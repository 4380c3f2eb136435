"""The source of a new application's records, and the application's source code."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dagkit.cli.making.record_classes import Classes, in_docstring
from dagkit.cli.terminal.output import WrongUsage

_AS_TEXT = '''

def as_text(rejected: Rejected) -> str:
    """What was rejected, as a line of JSON: its place, the reason and itself."""
    place = {"file": rejected.path, "start": rejected.start}
    return json.dumps({**place, "reason": rejected.reason, "text": rejected.text})
'''
_APPLICATION = '''\
"""Reads {what}."""

{imports}from dagkit import Config, Dag, StreamingApplication
{library}
{others}{classes}{functions}

class {name}(StreamingApplication):
    """Its settings are in `properties.properties`; every property can be set there, or with -D."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        splitter = dag.add_operator("Splitter", {splitter}()){context}
        reader = dag.add_operator("Reader", {reader}({settings}))
        splitter >> reader >> dag.add_operator("Writer", {writer}){rejecting}
'''
_REJECTING = '\n        reader.rejected >> dag.add_operator("Rejected", PartWriter(format=as_text))'

_REJECTS = ("PartWriter", "Rejected")
_WIDTH = 100


@dataclass(frozen=True)
class Origin:
    """The input of an application, and the operators that read and write it."""

    what: str
    """The input in words."""
    splitter: str
    reader: str
    writer: str
    """The call that makes the writer."""
    settings: str = ""
    """The arguments of the reader."""
    context: str = ""
    """The call that makes the reader's context, if it has one."""
    types: Sequence[str] = ()
    """Further names that the application imports from the library."""
    properties: Mapping[str, str] = field(default_factory=dict)
    classes: Classes = field(default_factory=Classes)
    functions: str = ""
    imports: str = ""
    """Lines that import from other packages."""
    rejects: bool = True
    notes: Sequence[str] = ()
    """Remarks for the user."""

    def application(self, name: str) -> str:
        """The source code of an application that reads it, and writes what it reads."""
        functions = self.functions + (_AS_TEXT if self.rejects else "")
        calls = [self.splitter, self.reader, self.writer, self.context, *(_REJECTS if self.rejects else ())]
        imports = ("import json\n" if "json." in functions else "") + self.classes.imports
        if "Any]" in functions:
            imports += "from typing import Any\n"
        return _APPLICATION.format(
            what=in_docstring(self.what),
            imports=imports + "\n" * bool(imports),
            library=_imported({*(call.partition("(")[0] for call in calls), *self.types} - {""}),
            others=self.imports,
            classes=self.classes.text,
            functions=functions,
            name=name,
            splitter=self.splitter,
            context=f"\n        context = {self.context}" if self.context else "",
            reader=self.reader,
            settings="reader_context=context" if self.context else self.settings,
            writer=self.writer,
            rejecting=_REJECTING if self.rejects else "",
        )

    def property_file(self) -> str:
        """Its property file."""
        lines = [
            "# What is read, and where it is written; relative to the folder in which the application is launched.",
            # A backslash begins an escape in a property file.
            *(f"dt.operator.{key} = {value}".replace("\\", "\\\\") for key, value in self.properties.items()),
            "dt.operator.Writer.prop.filePath = output",
            *(["dt.operator.Rejected.prop.filePath = rejected"] if self.rejects else []),
        ]
        return "\n".join(lines) + "\n"


def literal(text: str) -> str:
    """A text as the value of a property, in which `${` begins no reference."""
    return text.replace("${", "$${")


def class_name(folder: str) -> str:
    """The name of the application in a folder."""
    name = "".join(word[:1].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", folder))
    if not name or name[0].isdigit():
        raise WrongUsage(f"{folder!r} makes no name of a class: begin it with a letter of A to Z")
    return name


def _imported(names: Iterable[str]) -> str:
    """The lines that import names of the library."""
    lines = textwrap.wrap(", ".join(sorted(names)), _WIDTH)
    return "\n".join(f"from dagkit_operators import {line.rstrip(',')}" for line in lines)
