"""`python -m bench NAME`: run a benchmark; exits with 1 if a measured bound is not met."""

import importlib
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run the benchmark named by the first argument, with the other arguments."""
    known = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    if not arguments or arguments[0] not in known:
        print(f"usage: python -m bench {{{','.join(known)}}} [--json]", file=sys.stderr)
        return 2
    answer = importlib.import_module(f"bench.{arguments[0]}").main(arguments[1:])
    assert isinstance(answer, int), "a benchmark returns an exit code"
    return answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
