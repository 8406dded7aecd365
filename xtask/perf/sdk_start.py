#!/usr/bin/env python3
"""CPU of a session that the SDK for Python starts, of two programs beside each other.

  sdk_start.py PROGRAM OTHER [--runs N]

Run it with the Python that has `claude-agent-sdk` (target/needs/python/bin/python). Each run is a process of its own: it
starts PROGRAM or OTHER in turn by the SDK, asks one thing of a model on this machine that answers at once, reads the
answer, and ends the session. CPU is user and system time of all its children, the orphans of those included, as
`getrusage` tells it: the SDK's own is not in it. Prints the median and the least of both, the time to the first answer,
and PROGRAM's part of OTHER's CPU. The first run of each is not counted.
"""
import argparse
import asyncio
import ctypes
import http.server
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PR_SET_CHILD_SUBREAPER = 36

ANSWER = "The answer."


def events():
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1}}
    yield "message_start", {"message": message}
    yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
    yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": ANSWER}}
    yield "content_block_stop", {"index": 0}
    yield "message_delta", {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 3}}
    yield "message_stop", {}


BODY = "".join(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n" for kind, data in events()).encode()


class Model(http.server.BaseHTTPRequestHandler):
    """Answers every request of the Messages API in the same way, and everything else with an empty object."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        is_message = self.path.split("?")[0].endswith("/v1/messages")
        self.reply(BODY if is_message else b"{}", "text/event-stream" if is_message else "application/json")

    def do_GET(self):
        self.reply(b"{}", "application/json")

    def reply(self, body, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


async def ask(program, directory):
    """Asks one thing; the seconds until the answer is there."""
    from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, query

    options = ClaudeAgentOptions(cli_path=program, cwd=directory, model="claude-sonnet-4-5")
    begin, answered = time.monotonic(), None
    async for message in query(prompt="hello", options=options):
        if isinstance(message, AssistantMessage) and answered is None:
            texts = [block.text for block in message.content if hasattr(block, "text")]
            if texts != [ANSWER]:
                raise SystemExit(f"{program} answered {texts}")
            answered = time.monotonic() - begin
    if answered is None:
        raise SystemExit(f"{program} gave no answer")
    return answered


def one(program):
    """One run, in this process: CPU of the children and time to the answer, as JSON on standard output."""
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise SystemExit("orphans cannot be counted here")
    with tempfile.TemporaryDirectory() as directory:
        answered = asyncio.run(ask(program, directory))
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"cpu_ms": (used.ru_utime + used.ru_stime) * 1000, "answer_ms": answered * 1000}))


def measured(program, home, url):
    environment = {"PATH": os.environ["PATH"], "HOME": home, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "key",
                   "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    command = [sys.executable, os.path.abspath(__file__), "--one", program]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if ran.returncode != 0:
        raise SystemExit(f"{program}: {ran.stderr.strip()[-2000:]}")
    return json.loads(ran.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        return one(arguments.one)
    if len(arguments.programs) != 2 or arguments.runs < 1:
        parser.error("two programs are compared, at least once")
    programs = [os.path.abspath(program) for program in arguments.programs]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    runs = [[], []]
    with tempfile.TemporaryDirectory() as home:
        for _ in range(arguments.runs + 1):
            for program, results in zip(programs, runs):
                results.append(measured(program, home, url))
    cpu = []
    for program, results in zip(programs, runs):
        used = [run["cpu_ms"] for run in results[1:]]
        answer = statistics.median(run["answer_ms"] for run in results[1:])
        cpu.append(statistics.median(used))
        print(f"{program}: {cpu[-1]:.1f} ms of CPU in the median, {min(used):.1f} ms at least; answer after {answer:.0f} ms")
    print(f"ratio: {cpu[0] / cpu[1]:.3f} (1/{cpu[1] / cpu[0]:.1f})")


if __name__ == "__main__":
    main()
