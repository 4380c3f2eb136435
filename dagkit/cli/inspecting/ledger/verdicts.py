"""`dagkit ledger verify`: replay every chain, and report what is proven."""

from collections.abc import Sequence
from typing import Any, TextIO

import rich_click as click
from click.exceptions import Exit

from dagkit.cli.application.options import spoken
from dagkit.cli.inspecting.ledger.reported import fault_document, path_or_only, report_unborn, reported_faults
from dagkit.cli.terminal.output import Output
from dagkit.engine.program.address import Address
from dagkit.errors import printable
from dagkit.ground.amounts import counted
from dagkit.ledger import Ledger
from dagkit.ledger.audit.kept_heads import KeptHead, heads_in
from dagkit.ledger.audit.verify import ChainVerdict
from dagkit.ledger.audit.verify import verify as verify_ledger
from dagkit.ledger.audit.work_audit import Proven
from dagkit.ranges.progress import SHARES


@click.command()
@path_or_only
@click.option("--chain", help="Only this chain.")
@click.option("--contents/--no-contents", default=True, help="Hash every slice and checkpoint, and count every byte.")
@click.option(
    "--head", "heads", metavar="FILE", type=click.File(), help="Check that the heads kept in FILE are in the chains."
)
@click.option("--complete", is_flag=True, help="Treat input that is not read yet as a fault.")
@spoken
def verify(
    *, path: str, chain: str | None, contents: bool, heads: TextIO | None, complete: bool, output: Output
) -> None:
    """Replay every block, hash every content, and prove that every byte was consumed exactly once.

    Exits with 1 at any fault, and names the chain and the block.
    """
    kept = [] if heads is None else _kept(heads)
    with reported_faults(output):
        opened = Ledger.open(path)
        report_unborn(opened, output)
        verdict = verify_ledger(opened, only=chain, contents=contents, kept=kept)
    if output.as_json:
        body = {
            "well": verdict.is_valid,
            "complete": verdict.is_complete,
            "proven": [_proven(input_) for input_ in verdict.proven],
            "unproven": list(verdict.unproven),
            "chains": [_judged(v) for v in verdict.chains],
        }
        output.document("dagkit.ledger.verdict/1", body)
    else:
        proven = (_proof_in_words(each, is_valid=verdict.is_valid) for each in verdict.proven)
        proofs = [*proven, *(f"not proven: {printable(w)}" for w in verdict.unproven)]
        output.result("\n".join([*(_sentence(v) for v in verdict.chains), *proofs]))
        for fault in verdict.faults:
            output.fault(str(fault))
    if not verdict.is_valid or (complete and not verdict.is_complete):
        raise Exit(1)


def _kept(heads: TextIO) -> Sequence[KeptHead]:
    try:
        kept = list(heads_in(heads.read()))
    except ValueError as error:
        raise click.BadParameter(f"{heads.name}: {error}", param_hint="'--head'") from None
    if not kept:
        raise click.BadParameter(f"{heads.name} holds no head", param_hint="'--head'")
    return kept


def _judged(verdict: ChainVerdict) -> dict[str, Any]:
    return {
        "chain": verdict.name,
        "kind": verdict.kind,
        "well": verdict.is_valid,
        "blocks": verdict.blocks,
        "last_offset": verdict.offset,
        "faults": [fault_document(f) for f in verdict.faults],
    }


def _proven(proven: Proven) -> dict[str, Any]:
    return {
        "operator": Address(proven.input).operator,
        "input": proven.input,
        "sources": len(proven.sources),
        "elements_without_source": proven.elements,
        "positions": proven.positions,
        "elements": proven.shares / SHARES,
        "waiting": proven.waiting,
        "waiting_elements": proven.waiting_shares / SHARES,
        "endless": proven.endless,
        "set_aside": [str(span) for span in proven.aside],
        "given_up": [str(span) for span in proven.given_up],
        "skipped": [str(span) for span in proven.skipped],
    }


def _proof_in_words(proven: Proven, *, is_valid: bool) -> str:
    """`Block-reader: 7 sources, 1,234 positions, every one read once`; after any fault nothing is proven."""
    counts = [counted(len(proven.sources), "source")]
    counts += [f"{counted(proven.elements, 'element')} besides"] if proven.elements else []
    counts += [_elements(proven.shares)] if proven.shares else []
    counts += [counted(proven.positions, "position")] if proven.positions or not proven.shares else []
    counts += ["every one read once" if is_valid else "not proven because of the faults"]
    counts += [f"{proven.waiting:,} wait"] if proven.waiting else []
    counts += [f"{_elements(proven.waiting_shares)} wait"] if proven.waiting_shares else []
    counts += [f"{proven.endless:,} without an end"] if proven.endless else []
    counts += [f"set aside: {' '.join(map(str, proven.aside))}"] if proven.aside else []
    counts += [f"given up: {' '.join(map(str, proven.given_up))}"] if proven.given_up else []
    counts += [f"skipped: {' '.join(map(str, proven.skipped))}"] if proven.skipped else []
    return printable(f"{Address(proven.input).operator}: {', '.join(counts)}")


def _elements(shares: int) -> str:
    """A sum of shares as `3 elements` or `2.75 elements`, rounded down: work that is not done is not counted."""
    whole, hundredths = divmod(shares * 100 // SHARES, 100)
    if not whole and not hundredths:
        return "less than 0.01 elements"
    return f"{whole:,}.{hundredths:02} elements" if hundredths else counted(whole, "element")


def _sentence(verdict: ChainVerdict) -> str:
    state = "OK" if verdict.is_valid else "NOT OK"
    unread = "" if not verdict.is_valid or not verdict.faults else "; some input is not read yet"
    return f"{verdict.name}: {state} ({counted(verdict.blocks, 'block')} verified{unread})"
