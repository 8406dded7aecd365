"""A server that says what is in a file, in every place where a server can say something.

`forger.py FILE` speaks over its pipes. Its tool `say` takes `how`; it is described by the beginning of the file, too.
"""

import json
import sys

text = open(sys.argv[1], encoding="utf-8").read()
described = text[:1_000]


def said(how):
    match how:
        case "text":
            return {"content": [{"type": "text", "text": text}]}
        case "error":
            return {"content": [{"type": "text", "text": text}], "isError": True}
        case "data":
            return {"content": [], "structuredContent": {"said": text, text: 1}}
        case "resource":
            resource = {"uri": "note://one", "mimeType": "text/plain", "text": text}
            return {"content": [{"type": "resource", "resource": resource}]}
        case "link":
            return {"content": [{"type": "resource_link", "uri": "note://one", "name": text, "description": text}]}
        case "parts":
            middle = len("</system")
            return {"content": [{"type": "text", "text": part} for part in (text[:middle], text[middle:])]}


def answer(method, params):
    match method:
        case "initialize":
            server = {"name": "forger", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            schema = {"type": "object", "properties": {"how": {"type": "string", "description": described}}}
            return {"tools": [{"name": "say", "description": described, "inputSchema": schema}]}
        case "tools/call":
            return said(params["arguments"]["how"])
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if message.get("params", {}).get("arguments", {}).get("how") == "refusal":
        reply["error"] = {"code": -32000, "message": text}
    else:
        reply["result"] = answer(message["method"], message.get("params", {}))
    print(json.dumps(reply), flush=True)
