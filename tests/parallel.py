"""How the processes of one test run share its tests: `pytest -n 2`."""

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling


class InOrder(LoadScopeScheduling):
    """Hand out the tests in the order in which they were collected; neighbours of one file go to one process.

    Such neighbours share their file's fixtures. A file has several groups of neighbours, since slow tests, and those on
    Spark, are collected after all others.
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # xdist would begin with the longest groups
        self._groups: dict[str, str] = {}
        self._file = ""

    def _split_scope(self, nodeid: str) -> str:
        """The group of a test. Scheduling asks for all tests in their order before it asks again for one."""
        if nodeid not in self._groups:
            file = nodeid.partition("::")[0]
            new = f"{len(self._groups)} {file}"
            self._groups[nodeid] = new if file != self._file else next(reversed(self._groups.values()))
            self._file = file
        return self._groups[nodeid]
