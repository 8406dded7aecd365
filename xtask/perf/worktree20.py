#!/usr/bin/env python3
"""Twenty isolated agents, beside another program with compatible flags.

  worktree20.py BENCH --bin other=/path/to/other --bin ours=/path/to/centurion [--runs 3] [--agents 20] [--python PYTHON]

BENCH is a `bench.py` that measures one run of a program against a mock of the Messages API: its `one` is used, so that
this case is measured as all others are. Each run has a repository of 500 files of its own; the main agent starts the
agents in the background, each with `isolation: worktree`; each reads five times, and ends. Programs run in turn. Prints
the medians of wall time and CPU, and the ratios of the last program to the first.
"""
import os
import shutil
import subprocess
import tempfile

from beside import arguments, load, report, run_in_turn

FILES = 500


def make_repository():
    top = tempfile.mkdtemp(prefix="worktree20-")
    for number in range(FILES):
        folder = os.path.join(top, f"d{number % 20}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"f{number}.txt"), "w") as file:
            file.write(f"file {number}\n" * 20)
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "all"]):
        identity = ["-c", "user.name=T", "-c", "user.email=t@localhost"]
        subprocess.run(["git", *identity, *command], cwd=top, check=True)
    return top


def run_once(bench, asked, name, path, home):
    asked.cwd = make_repository()
    try:
        run = bench.one(asked, name, path, home, f"@@worktrees:{asked.agents}", timeout=600)
        made = subprocess.run(["git", "worktree", "list"], cwd=asked.cwd, capture_output=True, text=True, check=True)
        run["left"] = len(made.stdout.splitlines()) - 1
    finally:
        shutil.rmtree(asked.cwd, ignore_errors=True)
        asked.cwd = None
    return run


def main():
    asked = arguments(__doc__, agents=20)
    bench = load(asked.bench)
    runs = run_in_turn(asked, lambda name, path, home: run_once(bench, asked, name, path, home))
    failed = lambda run: run["rc"] != 0 or run.get("agents_done") != asked.agents
    report(f"worktree{asked.agents}", asked, runs, ("wall_s", "cpu_s", "rss_mb", "left"), failed)


if __name__ == "__main__":
    main()
