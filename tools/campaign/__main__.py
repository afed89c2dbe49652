"""The command line of the campaign; `make campaign` calls it."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from . import draw, shrink, summary
from .runner import Campaign, Limits
from .state import State
from .worker import try_job


def main() -> int:
    """Run, resume, replay or summarise; exit status 1 means that something failed."""
    asked = _arguments()
    if asked.replay:
        return _replay(asked.replay)
    if asked.show is not None:
        print(json.dumps(draw.trial(asked.seed, asked.show, asked.peers).to_json(), indent=1))
        return 0
    state = State(asked.seed) if asked.fresh else State.load(asked.seed)
    if asked.write_summary:
        for path in summary.write(state):
            print(f"wrote {path}")
        return 0
    if state.done:
        print(f"going on with seed {asked.seed} after {state.done} trials", file=sys.stderr)
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has them ignored
        signal.signal(number, signal.default_int_handler)
    before = len(state.failures)
    limits = Limits(asked.minutes, asked.problems, before + asked.failures)
    Campaign(state, limits, asked.workers, asked.peers, asked.regressions).run()
    found = summary.summary(state)
    (state.folder / "summary.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(summary.text(found))
    return 1 if len(state.failures) > before else 0


def _arguments() -> argparse.Namespace:
    number = os.environ.get
    parser = argparse.ArgumentParser(
        prog="python -m tools.campaign",
        description="Try random problems in every way there is. Stopped at any time, it goes on where it was.",
    )
    add = parser.add_argument
    add("--minutes", type=float, default=float(number("CAMPAIGN_MINUTES") or 5))
    add("--seed", type=int, default=int(number("CAMPAIGN_SEED") or 1))
    add("--problems", type=int, default=int(number("CAMPAIGN_PROBLEMS") or 10**9),
        help="stop after so many distinct problems, those of earlier runs of the seed included")  # fmt: skip
    add("--workers", type=int, default=2, help="processes; with one, none forms second opinions")
    add("--peers", type=float, default=float(number("CAMPAIGN_PEERS") or 0),
        help="share of the float trials that PyTorch, JAX or TensorFlow compute too")  # fmt: skip
    add("--failures", type=int, default=100, help="stop after so many failures")
    add("--fresh", action="store_true", help="forget what the seed has done; else go on")
    add("--regressions", type=Path, default=shrink.REGRESSIONS, help="where failures are saved")
    add("--replay", type=Path, metavar="FILE", help="try one saved failure again")
    add("--show", type=int, metavar="INDEX", help="print one trial of the seed")
    add(
        "--write-summary", action="store_true", help="write docs/campaign.md and docs/campaign.json"
    )
    return parser.parse_args()


def _replay(path: Path) -> int:
    answer = try_job({"trial": shrink.read(path).to_json()})
    print(answer["failure"] or f"passes: {', '.join(answer['algorithms'])}")
    return 1 if answer["failure"] else 0


if __name__ == "__main__":
    sys.exit(main())
