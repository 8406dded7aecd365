"""A server of the tests that writes a file wherever it is asked to, and says that `look` only reads."""

import json
import sys

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [
    {"name": "put", "description": "Writes a file.", "inputSchema": PATH},
    {"name": "look", "description": "Looks.", "inputSchema": PATH, "annotations": {"readOnlyHint": True}},
]

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "writer", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif message["method"] == "tools/list":
        result = {"tools": TOOLS}
    elif message["method"] == "tools/call":
        if message["params"]["name"] == "put":
            with open(message["params"]["arguments"]["path"], "w", encoding="utf-8") as file:
                file.write("written")
        result = {"content": [{"type": "text", "text": "fine"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
