"""The example of the document about range trackers runs here, line by line."""

import pytest

from dagkit.ranges import OffsetRangeTracker


class MyReader:
    """Reads numbers of a list; a position is an index, and a record starts at each even one."""

    def __init__(self, source: list[int], start: int, end: int) -> None:
        self.current_source = source
        self.tracker = OffsetRangeTracker(start, end)
        self.index = start + start % 2
        self.returned: list[int] = []

    def start(self) -> bool:
        if self.index >= len(self.current_source) or not self.tracker.try_return_record_at(True, self.index):
            return False
        self.returned.append(self.current_source[self.index])
        return True

    def advance(self) -> bool:
        self.index += 1
        is_at_split_point = self.index % 2 == 0
        if self.index >= len(self.current_source):
            return False
        if not self.tracker.try_return_record_at(is_at_split_point, self.index):
            return False
        self.returned.append(self.current_source[self.index])
        return True

    def get_fraction_consumed(self) -> float:
        return self.tracker.fraction_consumed()


@pytest.mark.parametrize("split", range(20))
def test_my_reader_and_the_reader_of_the_residual_return_each_record_once(split):
    source = list(range(100, 120))
    primary = MyReader(source, 0, 20)
    goes_on = primary.start()
    for _ in range(5):
        goes_on = goes_on and primary.advance()
    assert 0.0 < primary.get_fraction_consumed() < 1.0
    was_split = primary.tracker.try_split_at_position(split)
    while goes_on and primary.advance():
        pass
    residual = MyReader(source, split, 20) if was_split else None
    goes_on = residual is not None and residual.start()
    while residual is not None and goes_on and residual.advance():
        pass
    assert primary.returned + (residual.returned if residual else []) == source
