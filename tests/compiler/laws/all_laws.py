"""The cases of all laws."""

from tests.compiler.laws import attributes, names, partitions, places, ports, properties, shape, windows

LAWS = (names, properties, ports, shape, attributes, partitions, windows, places)
CASES = [case for module in LAWS for case in module.law.cases]
