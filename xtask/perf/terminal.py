#!/usr/bin/env python3
"""The terminal, measured from outside: a pseudo terminal of 120 columns and 40 rows with the real binary in it.

  terminal.py PROGRAM [--claude PROGRAM] [--codex PROGRAM] [--idle SECONDS] [--only NAME,...] [--hold]

Start to prompt, key to echo (alone, and beside 100 agents that stream), CPU, wake-ups and bytes at rest and beside 100 agents
that wait, memory (at rest, with 100 agents, with 10,000 messages), bytes for a key, for a tick of the clock and for a streamed
answer. Other programs are measured where they can be started without an account: their start, echo, rest and memory. Prints the
load of the machine, and each number with its target and its ratio; with --hold it exits with 1 above a target.
"""
import argparse
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
import uuid

ROWS, COLUMNS = 40, 120
# Letters that nothing but a key writes.
LETTERS = "бвгджзийклмнптфцчшщъыьэюя"
AGENTS = 100
MESSAGES = 10_000

# Name of the number, the target, and its unit.
TARGETS = {
    "start to prompt": (25, "ms"),
    "key to echo, median": (2, "ms"),
    "key to echo, worst": (8, "ms"),
    "key to echo beside 100 agents, median": (2, "ms"),
    "key to echo beside 100 agents, worst": (8, "ms"),
    "rest: CPU": (0, "ms/s"),
    "rest: wake-ups": (0, "/s"),
    "rest: bytes": (0, "/s"),
    "memory at rest": (30, "MB"),
    "memory, 100 agents": (45, "MB"),
    "memory, 10,000 messages": (45, "MB"),
    "resume of 10,000 messages to prompt": (60, "ms"),
    "100 agents waiting: CPU": (3, "ms/s"),
    "100 agents waiting: bytes": (150, "/s"),
    "bytes for a key": (40, "B"),
    "bytes for a tick": (24, "B"),
    "bytes for 4 KB of answer": (12 * 1024, "B"),
}


# Questions of programs that ask for more than the place of the cursor, with what a plain terminal says.
ANSWERS = {
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b]10;?": b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
}


class Terminal:
    """A program in a pseudo terminal that answers the questions of programs."""

    def __init__(self, command, cwd, environment):
        self.seen = bytearray()
        self.began = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(command[0], command, environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def read(self, seconds):
        """Reads what comes within a time; the piece, or nothing."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return b""
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            return b""
        self.seen += piece
        if b"\x1b[6n" in piece:
            os.write(self.fd, b"\x1b[20;1R")
        for question, answer in ANSWERS.items():
            if question in piece:
                os.write(self.fd, answer)
        return piece

    def wait(self, words, seconds=60, start=0):
        """Waits for bytes of the program; the time since its start, or None."""
        deadline = time.perf_counter() + seconds
        wanted = [word.encode() for word in ([words] if isinstance(words, str) else words)]
        while time.perf_counter() < deadline:
            self.read(0.02)
            if any(word in self.seen[start:] for word in wanted):
                return time.perf_counter() - self.began
        return None

    def settle(self, quiet=0.5, most=20):
        deadline = time.perf_counter() + most
        while time.perf_counter() < deadline and self.read(quiet):
            pass

    def drain(self, seconds):
        deadline = time.perf_counter() + seconds
        count = 0
        while (left := deadline - time.perf_counter()) > 0:
            count += len(self.read(left))
        return count

    def send(self, text):
        os.write(self.fd, text.encode())

    def echoes(self, count):
        """The times from keys to their echoes, in milliseconds, and the bytes of each."""
        times, sizes = [], []
        for number in range(count):
            letter = LETTERS[number % len(LETTERS)]
            start, began = len(self.seen), time.perf_counter()
            self.send(letter)
            deadline = began + 5
            while letter.encode() not in self.seen[start:] and time.perf_counter() < deadline:
                self.read(0.5)
            times.append((time.perf_counter() - began) * 1000)
            sizes.append(len(self.seen) - start)
            self.drain(0.03)
            # Other text than the last one may hold the letter: the draft is emptied, and nothing else has it.
            self.send("\x7f")
            self.drain(0.03)
        return times, sizes

    def family(self):
        """The processes of the program."""
        parents = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat") as file:
                    parents.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
            except OSError:
                pass
        found, todo = [], [self.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            todo += parents.get(pid, [])
        return found

    def usage(self):
        """CPU in milliseconds, and switches of all threads."""
        cpu = switches = 0
        for pid in self.family():
            try:
                with open(f"/proc/{pid}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                cpu += (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
                for task in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{task}/status") as file:
                        switches += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
            except OSError:
                pass
        return cpu, switches

    def memory(self):
        """The memory of the program and its children, shared pages divided, in MB."""
        total = 0
        for pid in self.family():
            try:
                with open(f"/proc/{pid}/smaps_rollup") as file:
                    total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
            except OSError:
                pass
        return total / 1024

    def rest(self, seconds):
        self.settle(1.0)
        return self.rates(seconds)

    def rates(self, seconds):
        """CPU, wake-ups and bytes of a time in which nobody presses a key."""
        cpu, switches = self.usage()
        count = self.drain(seconds)
        after, woken = self.usage()
        return {
            "rest: CPU": (after - cpu) / seconds,
            "rest: wake-ups": (woken - switches) / seconds,
            "rest: bytes": count / seconds,
        }

    def close(self):
        try:
            os.kill(self.pid, signal.SIGTERM)
            for _ in range(100):
                self.read(0.02)
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    break
            else:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        except (OSError, ChildProcessError):
            pass
        os.close(self.fd)


class Ours:
    """Centurion with scripted models in a scratch home."""

    def __init__(self, program, root):
        self.program, self.root = os.path.abspath(program), root
        self.home, self.project = os.path.join(root, "home"), os.path.join(root, "project")
        os.makedirs(self.home)
        os.makedirs(self.project)
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.home, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        answer = "".join(f"Sentence {number} of an answer in some words. " + ("\n\n" if number % 5 == 4 else "") for number in range(100))[:4096]
        begin = [{"tool": "Agent", "input": {"description": f"part {number}", "prompt": "@@stream", "run_in_background": True}}
                 for number in range(AGENTS)]
        scenario = {"scripts": {
            "long": [{"blocks": [answer], "chunk_chars": 20, "chunk_delay_ms": 5}],
            "lead": [begin, "all of them stream"],
            "stream": [{"blocks": ["word " * 4000], "chunk_chars": 10, "chunk_delay_ms": 20}],
            "waiting": [[dict(call, input=dict(call["input"], prompt="@@silent")) for call in begin], "all of them wait"],
            "silent": [{"blocks": ["late"], "latency_ms": 600000}],
        }, "default": "short answer"}
        self.scenario = os.path.join(root, "scenario.json")
        with open(self.scenario, "w") as file:
            json.dump(scenario, file)

    def start(self, *more):
        command = [self.program, "--model", f"script:{self.scenario}", *more]
        terminal = Terminal(command, self.project, self.environment)
        took = terminal.wait("❯")
        return terminal, took

    def starts(self, numbers):
        times = []
        for _ in range(12):
            terminal, took = self.start()
            times.append(took * 1000)
            terminal.close()
        numbers["start to prompt"] = statistics.median(times[2:])

    def keys(self, numbers):
        terminal, _ = self.start()
        terminal.settle()
        times, sizes = terminal.echoes(200)
        numbers["key to echo, median"], numbers["key to echo, worst"] = statistics.median(times), max(times)
        numbers["bytes for a key"] = statistics.median(sizes)
        terminal.close()

    def rest(self, numbers, seconds):
        terminal, _ = self.start()
        numbers.update(terminal.rest(seconds))
        numbers["memory at rest"] = terminal.memory()
        terminal.close()

    def answer(self, numbers):
        terminal, _ = self.start()
        terminal.settle()
        start = len(terminal.seen)
        terminal.send("@@long\r")
        terminal.wait("Sentence 80", start=start)
        terminal.settle(1.0)
        numbers["bytes for 4 KB of answer"] = len(terminal.seen) - start
        terminal.close()

    def agents(self, numbers):
        terminal, _ = self.start()
        terminal.settle()
        terminal.send("@@lead\r")
        terminal.wait("all of them stream")
        terminal.drain(2)
        times, _ = terminal.echoes(200)
        numbers["key to echo beside 100 agents, median"] = statistics.median(times)
        numbers["key to echo beside 100 agents, worst"] = max(times)
        numbers["memory, 100 agents"] = terminal.memory()
        terminal.close()

    def waiting(self, numbers):
        terminal, _ = self.start()
        terminal.settle()
        # A turn that waits for its provider: nothing but the clock moves.
        terminal.send("@@silent\r")
        terminal.drain(3)
        seconds = 8
        numbers["bytes for a tick"] = terminal.drain(seconds) / (4 * seconds)
        terminal.close()
        terminal, _ = self.start()
        terminal.settle()
        terminal.send("@@waiting\r")
        terminal.wait("all of them wait")
        terminal.drain(3)
        numbers.update({name.replace("rest", "100 agents waiting"): value
                        for name, value in terminal.rates(10).items()})
        terminal.close()

    def messages(self, numbers):
        # One real session, whose two messages are repeated under new names.
        terminal, _ = self.start()
        terminal.settle()
        terminal.send("a prompt of some words\r")
        terminal.wait("short answer")
        terminal.settle()
        terminal.close()
        projects = os.path.join(self.home, ".centurion", "projects")
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(projects) for name in names if name.endswith(".jsonl")]
        path = max(paths, key=os.path.getmtime)
        with open(path) as file:
            records = [json.loads(line) for line in file]
        said = [record for record in records if record.get("type") in ("user", "assistant")][-2:]
        last = said[-1]["uuid"]
        with open(path, "a") as file:
            for _ in range(MESSAGES // 2):
                for record in said:
                    copy = dict(record, uuid=str(uuid.uuid4()), parentUuid=last)
                    last = copy["uuid"]
                    file.write(json.dumps(copy) + "\n")
        session = os.path.basename(path).removesuffix(".jsonl")
        times = []
        for _ in range(5):
            terminal, _ = self.start("--resume", session)
            # The prompt is there before that: now the end of the conversation can be read, and its beginning be scrolled to.
            times.append(terminal.wait("short answer") * 1000)
            terminal.settle()
            numbers["memory, 10,000 messages"] = terminal.memory()
            terminal.close()
        numbers["resume of 10,000 messages to prompt"] = statistics.median(times)


def peer(name, program, root, prompts, seconds):
    """The numbers of another program, as far as it can be started without an account."""
    home, project = os.path.join(root, f"home-{name}"), os.path.join(root, f"project-{name}")
    os.makedirs(home)
    os.makedirs(project)
    environment = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color", "LANG": "C.UTF-8",
                   "ANTHROPIC_API_KEY": "sk-ant-0000000000000000000000000000000000000000", "OPENAI_API_KEY": "sk-0",
                   "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    with open(os.path.join(home, ".claude.json"), "w") as file:
        json.dump({"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": {"approved": ["0" * 20], "rejected": []},
                   "projects": {os.path.realpath(project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}}, file)
    os.makedirs(os.path.join(home, ".codex"))
    with open(os.path.join(home, ".codex", "auth.json"), "w") as file:
        json.dump({"OPENAI_API_KEY": "sk-0"}, file)
    with open(os.path.join(home, ".codex", "config.toml"), "w") as file:
        file.write(f'[projects."{os.path.realpath(project)}"]\ntrust_level = "trusted"\n')
    numbers, times = {}, []
    for _ in range(5):
        terminal = Terminal([program], project, environment)
        took = terminal.wait(prompts, 20)
        if took is None:
            print(f"{name} showed no prompt: {bytes(terminal.seen[-300:])!r}", file=sys.stderr)
            terminal.close()
            return numbers
        times.append(took * 1000)
        terminal.close()
    numbers["start to prompt"] = statistics.median(times[1:])
    terminal = Terminal([program], project, environment)
    terminal.wait(prompts, 20)
    terminal.settle(1.5)
    echoes, sizes = terminal.echoes(60)
    if max(echoes) < 4000:
        numbers["key to echo, median"], numbers["key to echo, worst"] = statistics.median(echoes), max(echoes)
        numbers["bytes for a key"] = statistics.median(sizes)
    else:
        print(f"{name} does not echo: {bytes(terminal.seen[-300:])!r}", file=sys.stderr)
    numbers.update(terminal.rest(seconds))
    numbers["memory at rest"] = terminal.memory()
    terminal.close()
    return numbers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--claude")
    parser.add_argument("--codex")
    parser.add_argument("--idle", type=float, default=20)
    parser.add_argument("--only", default="starts,keys,rest,answer,agents,waiting,messages")
    parser.add_argument("--hold", action="store_true")
    options = parser.parse_args()
    root = tempfile.mkdtemp(prefix="centurion-terminal-")
    print(f"load before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    numbers, others = {}, {}
    try:
        ours = Ours(options.program, root)
        for name in filter(None, options.only.split(",")):
            part = getattr(ours, name)
            part(numbers, options.idle) if name == "rest" else part(numbers)
        for name, program, prompts in [("claude", options.claude, ["❯", "> "]), ("codex", options.codex, ["›", "▌"])]:
            if program:
                others[name] = peer(name, program, root, prompts, options.idle)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(f"load after: {os.getloadavg()[0]:.2f}")
    is_held = True
    for name, (target, unit) in TARGETS.items():
        if name not in numbers:
            for other in (it for it in others if name in others[it]):
                print(f"{name:<40} {other} {others[other][name]:.2f} {unit}")
            continue
        number = numbers[name]
        is_within = number <= target + 0.001
        is_held &= is_within
        beside = ""
        for other, theirs in others.items():
            if name in theirs:
                ratio = f", {theirs[name] / number:.1f} times ours" if number > 0.01 else ""
                beside += f"   {other} {theirs[name]:.2f}{ratio}"
        mark = "" if is_within else "  ABOVE"
        print(f"{name:<40} {number:>10.2f} {unit:<5} target {target:>6}{mark}{beside}")
    sys.exit(0 if is_held or not options.hold else 1)


if __name__ == "__main__":
    main()
