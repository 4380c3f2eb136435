"""What `dagkit` offers by name."""

import types

import dagkit


def test_all_public_names_are_offered_and_no_others() -> None:
    public = {
        name
        for name, value in vars(dagkit).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType) and name != "Mapping"
    }
    assert sorted(dagkit.__all__) == sorted(public)


def test_names_are_offered_in_alphabetical_order_and_once() -> None:
    assert list(dagkit.__all__) == sorted(set(dagkit.__all__))


def test_importing_star_gives_what_applications_are_written_with() -> None:
    given: dict[str, object] = {}
    exec("from dagkit import *", given)  # noqa: S102 - there is no other way to import star inside a function
    assert given["Dag"] is dagkit.Dag
    assert given["StreamingApplication"] is dagkit.StreamingApplication
