"""Values of attributes, from the text of a key or from code."""

import inspect
import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from dagkit.api.attributes import Attribute, DagContext, Described, Instance
from dagkit.api.metrics import MetricsAggregator
from dagkit.api.partitioning import Partitioner
from dagkit.api.stats import StatsListener
from dagkit.api.streams import StreamCodec
from dagkit.conf.values.classes import find_class, find_function
from dagkit.conf.values.conversion import Conversion
from dagkit.conf.values.object_making import (
    CLASS_MARKS,
    Unfit,
    make,
    object_in_json,
    parse_json,
    parse_object,
    parse_objects,
)
from dagkit.conf.values.property_types import plain

KINDS: Mapping[str, type] = {
    "MetricsAggregator": MetricsAggregator,
    "Partitioner": Partitioner,
    "StatsListener": StatsListener,
    "StreamCodec": StreamCodec,
}
"""The classes whose instances attributes take. Other kinds have no class in dagkit."""


def attribute_value(attribute: Attribute[Any], raw: Any, home: str | None = None, *, imports: bool = True) -> Any:
    """Convert text, a TOML or JSON value, or a value from code to a value of the attribute.

    Raise `ValueError` if it does not fit; the message follows "KEY is VALUE:". Without `imports`, as for a request, use
    only classes that are loaded, and accept only data for the properties of objects.
    """
    if raw is None and attribute.default is None:
        return None
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        raise Unfit("it has no value; write one, or leave the key out")
    conversion = Conversion(home=home, data_only=not imports)
    if attribute is DagContext.STRING_CODECS:
        return _codecs(raw, home)
    if isinstance(attribute.holds, Instance):
        return _instances(attribute.holds, raw, conversion)
    if isinstance(attribute.holds, Described):
        return _described(attribute.holds, raw, conversion)
    return _plain_value(attribute.holds, raw, conversion)


def _plain_value(holds: Any, raw: Any, conversion: Conversion) -> Any:
    kind = plain(holds)
    if isinstance(raw, str) and kind is not str:
        raw = _of_text(kind, raw.strip())
    try:
        # Strict, because pydantic would accept True for a count, and 1 for a truth value.
        return _adapter(holds).validate_python(conversion.convert(kind, raw), strict=True)
    except ValidationError as invalid:
        raise Unfit(_wanted(kind, invalid)) from invalid


@cache
def _adapter(holds: Any) -> TypeAdapter[Any]:
    return TypeAdapter(holds)


def _of_text(kind: Any, text: str) -> Any:
    """The text as a truth value or a number if it is one, or else unchanged."""
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    return int(text) if kind is int and _NUMBER.fullmatch(text) else text


def _wanted(kind: Any, invalid: ValidationError) -> str:
    if kind is bool:
        return "it must be true or false"
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return f"it must be one of {', '.join(member.name for member in kind)}"
    bound = next((error["ctx"] for error in invalid.errors() if error["type"] == "greater_than_equal"), None)
    if kind is int:
        return f"it must be a whole number of at least {bound['ge']}" if bound else "it must be a whole number"
    return f"it must be {_NAMES.get(kind, getattr(kind, '__name__', kind))}"


# Python refuses to convert texts of thousands of digits.
_NUMBER = re.compile(r"[+-]?\d{1,100}")
_NAMES: Mapping[Any, str] = {
    str: "text",
    type: "a class",
    dict: "key=value pairs separated by commas, or a JSON object",
}


def _instances(holds: Instance, raw: Any, conversion: Conversion) -> Any:
    """One object, or a list of several. Objects from code are not changed.

    If dagkit has no class for the kind, the attribute has no effect, and keeps its text.
    """
    kind = KINDS.get(holds.of)
    if kind is None:
        return raw
    if holds.of == "Partitioner" and str(raw).strip().isdecimal():
        raise Unfit(f"it must be the class of a Partitioner, as in StatelessPartitioner:{str(raw).strip()}")
    if isinstance(raw, str) and not raw.lstrip().startswith(("{", "[")):
        recipes = parse_objects(raw) if holds.many else [parse_object(raw)]
        instances = [make(conversion, recipe, kind, f"a {holds.of}") for recipe in recipes]
    else:
        data = parse_json(raw) if isinstance(raw, str) else raw
        instances = [
            _instance(holds, kind, instance, conversion)
            for instance in (data if isinstance(data, list | tuple) else [data])
        ]
    if not holds.many and len(instances) != 1:
        raise Unfit(f"it must be one {holds.of}, not {len(instances)}")
    for instance in instances:
        if inspect.isclass(instance):
            raise Unfit(f"it must be an object, not the class {instance.__name__}: write {instance.__name__}()")
        if not isinstance(instance, kind):
            raise Unfit(f"it must be a {holds.of}, and {type(instance).__name__} is not one")
    return instances if holds.many else instances[0]


def _instance(holds: Instance, kind: type, raw: Any, conversion: Conversion) -> Any:
    if isinstance(raw, str):
        return make(conversion, parse_object(raw), kind, f"a {holds.of}")
    if not isinstance(raw, Mapping):
        return raw
    recipe = object_in_json(raw)
    if recipe is None:
        raise Unfit(f'it must be JSON that names a class, as in {{"@class": "…", …}}, a kind of {holds.of}')
    return make(conversion, recipe, kind, f"a {holds.of}")


def _described(holds: Described, raw: Any, conversion: Conversion) -> Any:
    """An instance of the model that the attribute names, from its fields."""
    model = find_class(holds.of)
    assert issubclass(model, BaseModel), "attributes that are described as JSON hold models"
    data = parse_json(raw) if isinstance(raw, str) else raw
    if isinstance(data, Mapping):
        data = {key: value for key, value in data.items() if key not in CLASS_MARKS}
        return conversion.convert(model, data)
    if not isinstance(data, model):
        raise Unfit(f"it must be a JSON object with the fields of {model.__name__}")
    return data


def _codecs(raw: Any, home: str | None) -> Mapping[type, Callable[[str], Any]]:
    """Converters by class, from `Class=module:function` pairs or a JSON object. A class converts by being called."""
    conversion = Conversion(home=home)
    pairs = conversion.convert(Mapping[str, Any], raw)
    return {
        find_class(cls, home, is_called=False) if isinstance(cls, str) else cls: find_function(codec, home)
        if isinstance(codec, str)
        else codec
        for cls, codec in pairs.items()
    }
