#!/usr/bin/env python3
"""Twenty isolated agents, beside another program with compatible flags.

  worktree20.py BENCH --bin other=/path/to/other --bin ours=/path/to/centurion [--runs 3] [--agents 20] [--python PYTHON]

BENCH is a `bench.py` that measures one run of a program against a mock of the Messages API: its `one` is used, so that
this case is measured as all others are. Each run has a repository of 500 files of its own; the main agent starts the
agents in the background, each with `isolation: worktree`; each reads five times, and ends. Programs run in turn. Prints
the medians of wall time and CPU, and the ratios of the last program to the first.
"""
import argparse
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

FILES = 500


def load(path):
    spec = importlib.util.spec_from_file_location("bench", path)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    # The scripts of the mock are read from the directory of the benchmark: ours extend its own.
    os.environ["BENCH_SCENARIO"] = os.path.join(bench.HERE, "scenario.py")
    bench.HERE = HERE
    return bench


def make_repository():
    top = tempfile.mkdtemp(prefix="worktree20-")
    for number in range(FILES):
        folder = os.path.join(top, f"d{number % 20}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"f{number}.txt"), "w") as file:
            file.write(f"file {number}\n" * 20)
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "all"]):
        identity = ["-c", "user.name=T", "-c", "user.email=t@localhost"]
        subprocess.run(["git", *identity, *arguments], cwd=top, check=True)
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--bin", action="append", required=True, metavar="LABEL=PATH")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--python", default=sys.executable, help="a python with what the mock needs")
    asked = parser.parse_args()
    asked.cwd, asked.env, asked.bin_args = None, [], []
    if not os.environ.get("PERF_NETNS"):
        os.execvpe("unshare", ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", sys.executable, *sys.argv],
                   {**os.environ, "PERF_NETNS": "1"})
    bench = load(asked.bench)
    programs = [label.split("=", 1) for label in asked.bin]
    homes = {name: tempfile.mkdtemp(prefix=f"worktree20-home-{name}-") for name, _ in programs}
    runs = {name: [] for name, _ in programs}
    for number in range(asked.runs):
        for name, path in programs if number % 2 == 0 else programs[::-1]:
            runs[name].append(run_once(bench, asked, name, path, homes[name]))
    medians = {}
    for name, _ in programs:
        failed = [run for run in runs[name] if run["rc"] != 0 or run.get("agents_done") != asked.agents]
        median = {key: statistics.median(run[key] for run in runs[name]) for key in ("wall_s", "cpu_s", "rss_mb", "left")}
        medians[name] = median
        print(f"worktree{asked.agents} {name}: {len(failed)} of {asked.runs} failed, " +
              ", ".join(f"{key} {value:.3f}" for key, value in median.items()))
        if failed:
            print("  the first failure:", str(failed[0])[:600])
    first, last = programs[0][0], programs[-1][0]
    if first != last:
        ratios = {key: medians[first][key] / max(medians[last][key], 1e-6) for key in ("wall_s", "cpu_s")}
        print(f"{last} beside {first}: wall 1/{ratios['wall_s']:.1f}, CPU 1/{ratios['cpu_s']:.1f}")
    for home in homes.values():
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
