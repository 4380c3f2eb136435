"""Addresses: how checkpoints, facts and reports name one input or output of an operator."""

from typing import Any

from pydantic_core import CoreSchema, core_schema


class Address(str):
    """An operator and one of its ports, written "operator.port"; names of operators and ports hold no dot."""

    __slots__ = ()

    @classmethod
    def of(cls, operator: str, port: str) -> "Address":
        return cls(f"{operator}.{port}")

    @property
    def operator(self) -> str:
        return self.rpartition(".")[0]

    @property
    def port(self) -> str:
        return self.rpartition(".")[2]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        """A field of this type is plain text in JSON."""
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())


SourceKey = tuple[Address, str]
"""An input, and a source whose work it has, as the ledger names it."""


def operator_of_state(name: str) -> str:
    """The operator of kept state, whose key is the operator, or an address with a suffix."""
    return name.partition(".")[0]
