"""Class-level declarations, such as ports and state, that an author annotates: `n: State[int] = State(0)`."""

import inspect
from typing import Any, ClassVar, Final, get_args, get_origin, get_type_hints


class Annotation:
    """The annotation of a declaration, whose arguments are evaluated when they are asked for.

    A class may be annotated with types that are declared further down.
    """

    def __init__(self, written: Any, module: str) -> None:
        self._written = written
        self._module = module

    def arguments(self) -> tuple[Any, ...]:
        """The arguments of the declared class: `(int,)` for `OutputPort[int]`; empty where none can be evaluated."""
        hint = Any if self._written is None else resolved(self._written, self._module)
        while get_origin(hint) in (ClassVar, Final):
            (hint,) = get_args(hint)
        return get_args(hint)


def annotation_of(owner: type, name: str) -> Annotation:
    """The annotation under which a declaration stands in its class.

    Call it from `__set_name__`: there the annotation becomes that of a class variable, which the declaration is.
    Of any other annotation pydantic would make a field, with the declaration as its default.
    """
    written = inspect.get_annotations(owner).get(name)
    if written is not None:
        owner.__annotations__[name] = ClassVar[Any]
    return Annotation(written, owner.__module__)


def resolved(written: Any, module: str) -> Any:
    """The type that was written, where its names are known in the module; else anything."""
    bearer = type("bearer", (), {"__annotations__": {"declared": written}, "__module__": module})
    try:
        return get_type_hints(bearer, include_extras=True)["declared"]
    except NameError:
        return Any
