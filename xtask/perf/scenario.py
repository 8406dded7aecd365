"""The scripts of the benchmark that `$BENCH_SCENARIO` names, and one more: `@@worktrees:N` starts N isolated agents."""
import importlib.util
import os

_spec = importlib.util.spec_from_file_location("base_scenario", os.environ["BENCH_SCENARIO"])
_base = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_base)


def isolated(count):
    return [_base.agent(number, True, isolation="worktree", **_base.GP) for number in range(count)]


SCRIPTS = {
    **_base.SCRIPTS,
    "worktrees": _base.Steps(lambda turn, count, request: isolated(count) if turn == 0 else "waiting"),
}
