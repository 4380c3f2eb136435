"""Operators are shipped to the workers before they are set up."""

import cloudpickle
import pytest

from dagkit_operators import (
    FileMerger,
    FileSliceReader,
    FileSplitterInput,
    FSSliceWriter,
    LineReader,
    MatchFiles,
    PartWriter,
    RecordWriter,
)

OPERATORS = [
    FileSplitterInput(scanner={"files": ["input"]}),
    MatchFiles(),
    LineReader(),
    FileSliceReader(),
    RecordWriter(file_path="output"),
    PartWriter(file_path="output"),
    FSSliceWriter(file_path="output"),
    FileMerger(file_path="output"),
]


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: type(operator).__name__)
def test_an_operator_can_be_pickled(operator):
    assert cloudpickle.loads(cloudpickle.dumps(operator)) == operator
