"""What the measurements beside another program with compatible flags share.

They use a `bench.py` that measures one run of a program against a mock of the Messages API: its `one` is used, so that
their cases are measured as all others are. Programs run in turn, in a network of their own.
"""
import argparse
import importlib.util
import os
import shutil
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def arguments(description, **numbers):
    """The arguments of the script; `numbers` are options of its own. Starts it anew in a network of its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--bin", action="append", required=True, metavar="LABEL=PATH")
    parser.add_argument("--runs", type=int, default=3)
    for name, number in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--python", default=sys.executable, help="a python with what the mock needs")
    asked = parser.parse_args()
    asked.cwd, asked.env, asked.bin_args = None, [], []
    if not os.environ.get("PERF_NETNS"):
        os.execvpe("unshare", ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", sys.executable, *sys.argv],
                   {**os.environ, "PERF_NETNS": "1"})
    asked.programs = [label.split("=", 1) for label in asked.bin]
    return asked


def load(path):
    spec = importlib.util.spec_from_file_location("bench", path)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    # The scripts of the mock are read from the directory of the benchmark: ours extend its own.
    os.environ["BENCH_SCENARIO"] = os.path.join(bench.HERE, "scenario.py")
    bench.HERE = HERE
    return bench


def run_in_turn(asked, run_once):
    """The runs of each program. `run_once` gets its label, its path, and its home, which all of its runs share."""
    homes = {name: tempfile.mkdtemp(prefix=f"beside-home-{name}-") for name, _ in asked.programs}
    runs = {name: [] for name, _ in asked.programs}
    for number in range(asked.runs):
        for name, path in asked.programs if number % 2 == 0 else asked.programs[::-1]:
            runs[name].append(run_once(name, path, homes[name]))
    for home in homes.values():
        shutil.rmtree(home, ignore_errors=True)
    return runs


def report(case, asked, runs, keys, failed):
    """Prints the medians of each program, and the ratios of the first to the last."""
    medians = {}
    for name, _ in asked.programs:
        bad = [run for run in runs[name] if failed(run)]
        medians[name] = {key: statistics.median(run[key] for run in runs[name]) for key in keys}
        print(f"{case} {name}: {len(bad)} of {asked.runs} failed, " +
              ", ".join(f"{key} {value:.3f}" for key, value in medians[name].items()))
        if bad:
            print("  the first failure:", str(bad[0])[:600])
    first, last = asked.programs[0][0], asked.programs[-1][0]
    if first != last:
        ratios = {key: medians[first][key] / max(medians[last][key], 1e-6) for key in ("wall_s", "cpu_s")}
        print(f"{last} beside {first}: wall 1/{ratios['wall_s']:.1f}, CPU 1/{ratios['cpu_s']:.1f}")
