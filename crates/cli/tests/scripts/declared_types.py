"""Writes a JSON schema of the events that the SDK for TypeScript declares: names, types and required fields. Beside it
stand the names of what hosts can ask for: requests, options and methods of both SDKs, and the flags of the one for Python.

Usage: declared_types.py node_modules > schema.json
"""

import dataclasses
import inspect
import json
import re
import sys
from pathlib import Path

import claude_agent_sdk
from claude_agent_sdk._internal.transport import subprocess_cli

TOKEN = re.compile(r"""\s+|//[^\n]*|/\*.*?\*/|(?P<word>[A-Za-z_$][\w$]*)|(?P<text>'[^']*'|"[^"]*")|(?P<number>-?\d+)|(?P<mark>=>|[{}\[\]()<>|&?:;,.=*])""", re.S)

# The provider's own shapes, which the program passes on as they are.
PASSED_ON = {
    "BetaMessage": {"type": "object", "required": ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"],
                    "properties": {"type": {"const": "message"}, "role": {"const": "assistant"}, "content": {"type": "array"}, "usage": {"type": "object"}}},
    "BetaRawMessageStreamEvent": {"type": "object", "required": ["type"]},
    "MessageParam": {"type": "object", "required": ["role", "content"]},
    "JSONRPCMessage": {"type": "object"},
    "UUID": {"type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
}
# Each request has a definition of its own, and its fields stand beside the definitions.
CUT = {"SDKControlRequestInner": {"type": "object", "required": ["subtype"]}}
# What the program prints: events, requests to the host, and answers to requests of the host.
ROOTS = [
    "SDKMessage", "SDKActiveGoalMessage", "SDKControlRequestProgressMessage", "SDKControlPermissionRequest", "SDKControlElicitationRequest", "SDKControlMcpMessageRequest",
    "SDKControlCancelRequest", "SDKKeepAliveMessage", "SDKHookCallbackRequest", "SDKControlInitializeResponse",
    "SDKControlInterruptResponse", "SDKControlGetContextUsageResponse", "SDKControlGetUsageResponse",
    "SDKControlListPermissionRulesResponse", "SDKControlGetHooksListingResponse", "SDKControlReloadPluginsResponse",
    "SDKControlReloadSkillsResponse", "SDKControlReloadOutputStylesResponse", "SDKControlReadFileResponse",
    "SDKControlMcpReadResourceResponse", "SDKControlGetTaskOutputResponse", "McpSetServersResult", "RewindFilesResult",
    "McpServerStatus", "ModelInfo", "SDKControlRequest", "SDKControlResponse",
]
PLAIN = {"string": {"type": "string"}, "number": {"type": "number"}, "boolean": {"type": "boolean"}, "null": {"type": "null"},
         "true": {"const": True}, "false": {"const": False}, "unknown": True, "any": True, "undefined": False, "object": {"type": "object"}}


class Types:
    """Reads the types of a declaration file, one definition at a time."""

    def __init__(self, text):
        self.text = text
        self.starts = {}
        for found in re.finditer(r"^(?:export )?(?:declare )?(type|interface) (\w+)\s*(<[^=\n]*>)?\s*(?:extends [^{]*)?(=?)", text, re.M):
            self.starts.setdefault(found.group(2), found.end())
        self.wanted = []

    def definition(self, name):
        self.tokens = tokens(self.text, self.starts[name])
        self.now = next(self.tokens, None)
        return self.union()

    def take(self, mark=None):
        token = self.now
        if mark is not None and token != mark:
            raise SyntaxError(f"{mark} expected, {token} found")
        self.now = next(self.tokens, None)
        return token

    def union(self):
        if self.now == "|":
            self.take()
        parts = [self.intersection()]
        while self.now == "|":
            self.take()
            parts.append(self.intersection())
        parts = [part for part in parts if part is not False]
        consts = [part["const"] for part in parts if isinstance(part, dict) and set(part) == {"const"}]
        others = [part for part in parts if not (isinstance(part, dict) and set(part) == {"const"})]
        if consts:
            others.append({"const": consts[0]} if len(consts) == 1 else {"enum": consts})
        return others[0] if len(others) == 1 else {"anyOf": others}

    def intersection(self):
        parts = [self.postfix()]
        while self.now == "&":
            self.take()
            parts.append(self.postfix())
        return parts[0] if len(parts) == 1 else {"allOf": parts}

    def postfix(self):
        kind = self.primary()
        while self.now == "[":
            self.take()
            if self.now == "]":
                self.take()
                kind = {"type": "array", "items": kind}
            else:
                self.union()
                self.take("]")
                kind = True
        return kind

    def primary(self):
        token = self.take()
        if token == "{":
            return self.object()
        if token == "(":
            kind = self.union()
            self.take(")")
            return kind
        if token[0] in "'\"":
            return {"const": token[1:-1]}
        if re.fullmatch(r"-?\d+", token):
            return {"const": int(token)}
        name = token
        while self.now == ".":
            self.take()
            name = self.take()
        arguments = []
        if self.now == "<":
            self.take()
            while self.now != ">":
                arguments.append(self.union())
                if self.now == ",":
                    self.take()
            self.take()
        if name in PLAIN:
            return PLAIN[name]
        if name == "Record":
            return {"type": "object", "additionalProperties": arguments[1]}
        if name == "Array":
            return {"type": "array", "items": arguments[0]}
        self.wanted.append(name)
        return {"$ref": f"#/definitions/{name}"}

    def object(self):
        fields, required = {}, []
        while self.now != "}":
            name = self.take().strip("'\"")
            if name == "[":
                while self.take() != "]":
                    pass
                self.take(":")
                self.union()
            else:
                is_optional = self.now == "?"
                if is_optional:
                    self.take()
                self.take(":")
                fields[name] = self.union()
                if not is_optional:
                    required.append(name)
            while self.now in (";", ","):
                self.take()
        self.take("}")
        kind = {"type": "object", "properties": fields}
        if required:
            kind["required"] = required
        return kind


def tokens(text, at):
    while at < len(text):
        found = TOKEN.match(text, at)
        if not found:
            raise SyntaxError(text[at:at + 40])
        at = found.end()
        if found.lastgroup:
            yield found.group()


def names_of(text, name):
    """The names of the fields of an interface."""
    body = re.search(r"export interface " + name + r" \{(.*?)^\}", text, re.S | re.M).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return re.findall(r"^    (\w+)\??:", body, re.M)


def requests_of(types):
    """The requests of hosts, each with the names of its fields."""
    requests = {}
    for choice in types.definition("SDKControlRequestInner")["anyOf"]:
        fields = types.definition(choice["$ref"].removeprefix("#/definitions/"))["properties"]
        name = fields.pop("subtype")["const"]
        requests[name] = sorted(fields)
    return requests


def methods_of(text, name):
    """The names of the methods of an interface."""
    body = re.search(r"export declare interface " + name + r"\b[^{]*\{(.*?)^\}", text, re.S | re.M).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return sorted(re.findall(r"^    (\w+)\(", body, re.M))


def options_of(text):
    """The names of the options of a query."""
    body = re.search(r"^export declare type Options = \{(.*?)^\};", text, re.S | re.M).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return sorted(re.findall(r"^    (\w+)\??:", body, re.M))


def wishes(types):
    """The names of what hosts can ask for."""
    options = dataclasses.fields(claude_agent_sdk.ClaudeAgentOptions)
    methods = inspect.getmembers(claude_agent_sdk.ClaudeSDKClient, inspect.isfunction)
    flags = re.findall(r"[\"']--([a-zA-Z][a-zA-Z-]*)[=\"']", inspect.getsource(subprocess_cli))
    return {
        "requests": requests_of(types),
        "user_message": sorted(types.definition("SDKUserMessage")["properties"]),
        "options": options_of(types.text),
        "methods": methods_of(types.text, "Query"),
        "python_options": sorted(field.name for field in options),
        "python_methods": sorted(name for name, _ in methods if not name.startswith("_")),
        "python_flags": sorted(set(flags)),
    }


def main(modules):
    sdk = modules / "@anthropic-ai/claude-agent-sdk"
    types = Types((sdk / "sdk.d.ts").read_text())
    usage = names_of((modules / "@anthropic-ai/sdk/resources/beta/messages/messages.d.ts").read_text(), "BetaUsage")
    filled = {name: {"not": {"type": "null"}} for name in usage if name != "fallback_credit"}
    known = PASSED_ON | CUT
    known["NonNullableUsage"] = {"type": "object", "required": usage, "properties": filled}
    definitions = {}
    types.wanted = list(ROOTS)
    while types.wanted:
        name = types.wanted.pop()
        if name in definitions:
            continue
        if name in known:
            definitions[name] = known[name]
        elif name in types.starts:
            definitions[name] = types.definition(name)
        else:
            definitions[name] = True
    version = json.loads((sdk / "package.json").read_text())["version"]
    lines = [f"{json.dumps(name)}: {json.dumps(definitions[name], sort_keys=True)}" for name in sorted(definitions)]
    asked = [f"{json.dumps(name)}: {json.dumps(names)}" for name, names in wishes(types).items()]
    print('{"version": ' + json.dumps(version) + ",\n" + ",\n".join(asked) + ',\n"definitions": {\n' + ",\n".join(lines) + "\n}}")


main(Path(sys.argv[1]))
