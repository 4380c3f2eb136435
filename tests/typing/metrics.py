"""Metrics: a field has the type that it begins with; what is decorated stays what it was."""

from collections.abc import Iterator

from dagkit import InputPort, OutputPort, RowOperator, State, auto_metric, avg


class Parse(RowOperator):
    input = InputPort(str)
    output = OutputPort(int)
    seen = State(0)
    rejected = auto_metric(0)
    longest = auto_metric(0, aggregators=[max, avg])

    def process(self, item: str) -> Iterator[int]:
        self.rejected += 1
        self.longest = max(self.longest, len(item))
        self.longest = item  # error: assignment
        yield 1

    @auto_metric
    def so_far(self) -> int:
        return self.seen

    @auto_metric(aggregators=[min, max])
    def each(self) -> float:
        return 1.0

    @property
    @auto_metric
    def called(self) -> str:
        return "parse"


Parse().so_far().bit_length()
Parse().called.upper()
Parse().rejected.bit_length()
Parse().rejected.upper()  # error: attr-defined
auto_metric(object())  # error: call-overload
