"""Plays a person at work with one server: adds it, lets an agent use it, and logs in when told to.

The conformance suite of the protocol starts this for each of its scenarios and appends the URL of a server.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request

# Agrees to whatever a server asks, and fills nothing in.
AGREE = {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": {}}}
HOOK = {"type": "command", "command": f"echo '{json.dumps(AGREE)}'"}
SETTINGS = {"hooks": {"Elicitation": [{"hooks": [HOOK]}]}}

# The suite knows the client by this address where the authorization server reads documents about clients.
DOCUMENT = "https://conformance-test.local/client-metadata.json"

# A server may ask for more than was allowed once, but not for ever.
ATTEMPTS = 3


def centurion(*arguments):
    return [os.environ["CENTURION"], *arguments]


def add(url, context):
    server = {"type": "http", "url": url}
    if "client_id" in context:
        server["oauth"] = {"clientId": context["client_id"]}
    elif os.environ.get("MCP_CONFORMANCE_SCENARIO") == "auth/basic-cimd":
        server["oauth"] = {"clientId": DOCUMENT}
    subprocess.run(centurion("mcp", "add-json", "tried", json.dumps(server)), check=True)


def work(context):
    """Lets an agent call what the server has; tells whether it was reached and whether a login is wanted."""
    run = subprocess.run(
        centurion(
            "-p", json.dumps(context), "--allowedTools", "mcp__tried", "--settings", json.dumps(SETTINGS),
            "--output-format", "stream-json", "--verbose",
        ),
        stdout=subprocess.PIPE, text=True, check=False,
    )
    print(run.stdout)
    events = [json.loads(line) for line in run.stdout.splitlines()]
    starts = [event for event in events if event.get("subtype") == "init"]
    states = [server["status"] for event in starts for server in event["mcp_servers"]]
    wants_login = "needs-auth" in states or "centurion mcp login" in run.stdout
    return states == ["connected"], wants_login


def log_in():
    """Logs in as somebody whose browser follows wherever it is sent; tells whether that worked."""
    login = subprocess.Popen(centurion("mcp", "login", "tried"), stderr=subprocess.PIPE, text=True)
    for line in login.stderr:
        print(line, end="")
        if line.strip().startswith("http"):
            try:
                urllib.request.urlopen(line.strip()).read()
            except OSError as error:
                print("the page could not be visited:", error)
                login.kill()
    return login.wait() == 0


def main():
    url = sys.argv[-1]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    scratch = tempfile.mkdtemp(dir=os.environ["SCRATCH"])
    os.environ["HOME"] = scratch
    os.chdir(scratch)
    if "client_secret" in context:
        os.environ["MCP_CLIENT_SECRET"] = context["client_secret"]
    add(url, context)
    for _ in range(ATTEMPTS):
        is_connected, wants_login = work(context)
        if not wants_login:
            return is_connected
        if not log_in():
            return False
    return False


sys.exit(0 if main() else 1)
