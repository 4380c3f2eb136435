"""Requests to see items that pass on a stream: the next committed window with such items answers each of them."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from dagkit.api.operators import DelayOperator
from dagkit.engine.inputs.discoveries import Discovery
from dagkit.engine.parts.discover import DriverInputs
from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.requests import Refused, Reply, Request, RequestInbox, ShownItem, TapStream
from dagkit.engine.parts.run_part import EndedWindow, RunPart
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.worker.binding import Tapping
from dagkit.engine.worker.protocol import Sample, Tap
from dagkit.errors import did_you_mean
from dagkit.graph import Graph
from dagkit.ledger import StoreError

_log = logging.getLogger(__name__)
MOST_REJECTED = 3
"""How many rejected records of a slot and a window are kept."""
LASTS = timedelta(minutes=1)
"""After this time an unanswered request is dropped: its command renews it as long as it runs."""


class Taps(RunPart):
    """The requests that are not answered."""

    def __init__(self, run: RunState, inbox: RequestInbox, inputs: DriverInputs) -> None:
        self._run = run
        self._inbox = inbox
        self._inputs = inputs
        self._sent: dict[int, tuple[Sample, ...]] = {}
        """The samples of what input operators sent to windows in flight: they run on the driver."""
        self._taps: dict[str, tuple[datetime, Sequence[Tap]]] = {}
        """The tapped outputs of each request, and when it was added: the clock of its requester may differ."""

    def add(self, request: Request, asks: TapStream, graph: Graph, now: datetime) -> None:
        """Take a request; refuse it unless the graph has such a stream."""
        try:
            taps = [Tap(request.id, *output, asks.most, asks.every) for output in _outputs(graph, asks.stream)]
        except Refused as refused:
            reason = f"{refused.problem}\n  help: {refused.help}"  # the command adds the code
            self._inbox.reply(Reply(id=request.id, done=False, refused=reason))
        else:
            self._taps[request.id] = now, taps

    def wanted(self, now: datetime) -> tuple[Tap, ...]:
        """The outputs to take samples of in the next window; nothing is read if there are no requests."""
        gone = [each for each, (at, _) in self._taps.items() if now - at > LASTS or self._is_withdrawn(each)]
        for each in gone:
            del self._taps[each]
            self._inbox.drop(each)
        return tuple(tap for _, taps in self._taps.values() for tap in taps)

    def _is_withdrawn(self, request: str) -> bool:
        """Whether a request was withdrawn; not if that cannot be read now: no run ends for a tap."""
        try:
            return not self._inbox.is_there(request)
        except StoreError as error:
            _log.warning("request %s cannot be read now: %s", request, error)
            return False

    def before(self, window: InFlightWindow) -> None:
        taps = self.wanted(self._run.now())
        summary = self._run.summary
        rejected = (Tap("", *output, MOST_REJECTED, 1) for output in summary.rejecting)
        window.task = replace(window.task, taps=(*taps, *rejected))
        if taps:
            self._sent[window.window_id] = _sent_by_inputs(taps, self._inputs.discovered(window))

    def announce(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        """Answer the requests of which the window has samples."""
        samples = (*self._sent.pop(ended.window_id, ()), *(ended.answer.samples if ended.task.taps else ()))
        masking = self._run.masking
        hide = masking.hide
        by_request: dict[str, list[Sample]] = {}
        for sample in samples:
            by_request.setdefault(sample.request, []).append(sample)
        for request, found in by_request.items():
            if request in self._taps:
                most = self._taps.pop(request)[1][0].most
                items = tuple(
                    ShownItem(operator=one.operator, slot=one.slot, item=hide(one.item), place=hide(one.place))
                    for one in found[:most]
                )
                self._inbox.reply(Reply(id=request, done=True, window=ended.window_id, items=items))


def rejected_in(samples: Iterable[Sample], hide: Callable[[str], str]) -> list[Sample]:
    """The samples of rejected records; `hide` masks secrets."""
    return [replace(one, item=hide(one.item), place=hide(one.place)) for one in samples if not one.request]


def _sent_by_inputs(taps: Iterable[Tap], discoveries: Iterable[Discovery]) -> tuple[Sample, ...]:
    """The samples of what input operators sent."""
    found = list(discoveries)
    samples: list[Sample] = []
    for tap in taps:
        tapping = Tapping(tap, 0)
        for discovery in found:
            if discovery.operator == tap.operator:
                tapping.take(emitted.item for emitted in discovery.emitted if emitted.port == tap.port)
        samples += tapping.samples
    return tuple(samples)


def _outputs(graph: Graph, name: str) -> list[tuple[str, str]]:
    """The outputs that feed a stream, given by its name, or as `operator.port` or `operator` of its source."""
    found = [
        (end.node, end.port)
        for stream in graph.streams
        for end in stream.sources
        if name in (stream.name, end.node, f"{end.node}.{end.port}")
    ]
    if not found:
        known = [stream.name for stream in graph.streams] + [node.name for node in graph.nodes]
        raise Refused(f"there is no stream {name!r}", did_you_mean(name, known))
    delay = next((node for node, _ in found if isinstance(graph.by_name[node].operator, DelayOperator)), None)
    if delay is not None:
        raise Refused(f"{delay} is a delay, and only passes on what it receives", "tap the stream that leads to it")
    return list(dict.fromkeys(found))
