#!/usr/bin/env python3
"""Compaction of a long session by `/compact`, beside another program with compatible flags.

  compaction.py BENCH --bin other=/path/to/other --bin ours=/path/to/centurion [--runs 3] [--lines 10000] [--python PYTHON]

Each program has a session of its own of so many lines, made by the benchmark's `long_session`. Each run is
`-p /compact --resume ID --fork-session`. Prints the medians of wall time and CPU, and the ratios of the first program
to the last.
"""
import shutil
import tempfile

from beside import arguments, load, report, run_in_turn


def main():
    asked = arguments(__doc__, lines=10000)
    bench = load(asked.bench)
    sessions = {}
    asked.cwd = tempfile.mkdtemp(prefix="compaction-")

    def run_once(name, path, home):
        if name not in sessions:
            sessions[name], _ = bench.long_session(asked, name, path, home, asked.lines)
        return bench.one(asked, name, path, home, "/compact", extra=["--resume", sessions[name], "--fork-session"])

    runs = run_in_turn(asked, run_once)
    shutil.rmtree(asked.cwd, ignore_errors=True)
    failed = lambda run: run["rc"] != 0 or run["reqs"] == 0
    report("compaction", asked, runs, ("wall_s", "cpu_s", "rss_mb", "reqs"), failed)


if __name__ == "__main__":
    main()
