"""Reading applications that are declared in a file."""

from pathlib import Path

from dagkit.api.traces import shown_path
from dagkit.conf.declared.declaration import DeclaredApplication
from dagkit.conf.declared.declared_json import declared_in_json
from dagkit.conf.declared.declared_properties import declared_in_properties
from dagkit.conf.formats.property_files import read_file
from dagkit.conf.formats.written import ParseError
from dagkit.errors import ApplicationFaults, ApplicationNotFound, did_you_mean

ENDINGS = (".json", ".properties")


def declared_application(path: Path) -> DeclaredApplication:
    """The application that the file declares. Raise `ApplicationFaults` if the file cannot be parsed.

    Other faults in the file become faults of the Dag that the application fills.
    """
    name = path.absolute().parent.name if path.stem == "app" else path.stem
    shown = shown_path(str(path))
    if not path.is_file():
        beside = [p.name for p in path.parent.iterdir() if p.suffix in ENDINGS] if path.parent.is_dir() else []
        raise ApplicationNotFound(f"there is no {shown}", did_you_mean(path.name, beside))
    if path.suffix == ".json":
        try:
            return DeclaredApplication(declaration=declared_in_json(path.read_bytes(), shown, name))
        except ParseError as error:
            raise ApplicationFaults(name, [error.diagnostic(shown, "file-unreadable")]) from error
    file = read_file(path)
    if file.faults:
        raise ApplicationFaults(name, file.faults)
    return DeclaredApplication(declaration=declared_in_properties(file.written, name))
