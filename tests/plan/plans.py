"""Plans small enough to see, made by hand."""

from typing import Any

from dagkit.plan import model


def operator(name, role=model.Role.OPERATOR, count=1, **said):
    """An operator of so many partitions, as its own stage."""
    fields: dict[str, Any] = {
        "name": name,
        "kind": f"test.{role}/1",
        "class_": "test.Sample",
        "role": role,
        "properties": {"prefix": "."},
        "attributes": {"TIMEOUT_WINDOW_COUNT": 5},
        "ports": (
            model.PlannedPort(name="input", type="input", payload="Line", connected=role is not model.Role.INPUT),
            model.PlannedPort(
                name="output", type="output", payload="Line", connected=True, attributes={"UNIFIER_LIMIT": 2}
            ),
        ),
        "partitions": tuple(
            model.PlannedPartition(index=i, keys={"input": model.Keys(mask=1, keys=(i,))} if count == 2 else {})
            for i in range(count)
        ),
        "why": model.Why(source="default", text="default"),
        "stage": name,
    }
    return model.PlannedOperator(**{**fields, **said})


def stream(source, /, *sinks, **said):
    """A stream between the usual ports, called as its source is."""
    fields: dict[str, Any] = {
        "name": source,
        "source": model.PlannedEnd(operator=source, port="output"),
        "sinks": tuple(
            model.PlannedSink(operator=sink, port="input", routing=model.Routing.STRAIGHT) for sink in sinks
        ),
        "payload": "Line",
    }
    return model.PlannedStream(**{**fields, **said})


def unifier(source, count):
    """The last unifier behind so many partitions."""
    return model.PlannedUnifier(
        name=f"{source}.output#unifier",
        kind="dagkit.merge/1",
        level=0,
        inputs=tuple(f"{source}[{i}]" for i in range(count)),
    )


def stage(*operators, **said):
    """A stage of these operators, among the workers."""
    fields: dict[str, Any] = {
        "name": " + ".join(operators),
        "operators": operators,
        "place": model.Place.WORKERS,
        "level": 0,
        "slots": 1,
    }
    return model.Stage(**{**fields, **said})


def cut(source, sink, /, **said):
    """A cut at the driver's edge."""
    fields: dict[str, Any] = {
        "stream": source,
        "source": model.PlannedEnd(operator=source, port="output"),
        "sink": model.PlannedEnd(operator=sink, port="input"),
        "kind": model.CutKind.DRIVER,
        "reason": f"{source} is an input operator",
        "exchange": False,
    }
    return model.Cut(**{**fields, **said})


def plan(**said):
    """read > keep, as it is unless something else is said."""
    fields: dict[str, Any] = {
        "application": "Filter",
        "attributes": {"STREAMING_WINDOW_SIZE_MILLIS": 500},
        "operators": (operator("read", model.Role.INPUT), operator("keep")),
        "streams": (stream("read", "keep"),),
        "stages": (stage("read", place=model.Place.DRIVER), stage("keep")),
        "cuts": (cut("read", "keep"),),
    }
    return model.Plan(**{**fields, **said})
