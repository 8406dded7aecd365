#!/usr/bin/env python3
"""CPU that skills add to a start of the program, held to targets.

  skills.py PROGRAM [--starts N]

Starts PROGRAM in turn in projects without skills, with 300 and with 5,000 (a SKILL.md of 3.6 KB each), all seen by an
earlier start, with a model that follows a script. CPU is user and system time of the process and its children, as
`getrusage` tells it. Prints the least and the median; the difference of the least is held to the targets, because other
programs run, too. Exits with 1 above a target.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# Skills in the project, and the CPU in milliseconds that they may add.
TARGETS = {300: 1.5, 5000: 3.0}

# A file that was written just now may be written again within the same tick of the clock: what is read of it is not kept.
SETTLING_SECONDS = 4

WARM_UP = 3


def skill(number):
    if number % 10 == 0:
        front = f"description: >\n  Looks after part {number}.\n  Knows it well."
    elif number % 10 == 1:
        front = f'description: "Part {number}: use it when tests fail"\nallowed-tools: [Read, Grep]'
    else:
        front = (f"description: Does part {number} of the work. Use it when that part is to be changed.\n"
                 "allowed-tools: Bash(git add:*), Read\nargument-hint: [file]")
    body = "Look at the part, find what is wrong with it, and say so.\n" * 60
    return f"---\nname: skill-{number}\n{front}\n---\n\n{body}"


def make_project(root, count):
    project = os.path.join(root, f"project-{count}")
    os.makedirs(project)
    for number in range(count):
        folder = os.path.join(project, ".claude", "skills", f"skill-{number}")
        os.makedirs(folder)
        with open(os.path.join(folder, "SKILL.md"), "w") as file:
            file.write(skill(number))
    return project


def start(program, project, root):
    """CPU of one start, in milliseconds."""
    model = "script:" + os.path.join(root, "scenario.json")
    environment = {"PATH": os.environ["PATH"], "HOME": os.path.join(root, "home")}
    child = subprocess.Popen([program, "-p", "@@hi", "--model", model], cwd=project, env=environment,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0 or said.strip() != b"hello":
        sys.exit(f"{program} ended with {child.returncode} and said {said!r}")
    return (usage.ru_utime + usage.ru_stime) * 1000


def measure(program, starts, root):
    os.makedirs(os.path.join(root, "home"))
    with open(os.path.join(root, "scenario.json"), "w") as file:
        json.dump({"scripts": {"hi": ["hello"]}}, file)
    projects = {count: make_project(root, count) for count in [0, *TARGETS]}
    time.sleep(SETTLING_SECONDS)
    times = {count: [] for count in projects}
    for round_number in range(WARM_UP + starts):
        for count, project in projects.items():
            spent = start(program, project, root)
            if round_number >= WARM_UP:
                times[count].append(spent)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--starts", type=int, default=40)
    asked = parser.parse_args()
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    root = os.path.realpath(tempfile.mkdtemp(prefix="centurion-skills-", dir=place))
    try:
        times = measure(os.path.realpath(asked.program), asked.starts, root)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    least = {count: min(spent) for count, spent in times.items()}
    median = {count: statistics.median(spent) for count, spent in times.items()}
    is_within = True
    for count in times:
        line = f"{count:>5} skills: {least[count]:.2f} ms of CPU at least, {median[count]:.2f} ms in the median"
        if count in TARGETS:
            more = least[count] - least[0]
            is_within &= more <= TARGETS[count]
            line += (f"; {more:.2f} and {median[count] - median[0]:.2f} ms more than without, "
                     f"target {TARGETS[count]} ms")
        print(line)
    if not is_within:
        sys.exit("above a target")


if __name__ == "__main__":
    main()
