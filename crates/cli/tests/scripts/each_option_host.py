"""A host that gives each option of the SDK for Python once, and looks at what it does."""

import asyncio
import dataclasses
import http.server
import json
import os
import sys
import tempfile
import threading
import traceback
import typing

from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    InMemorySessionStore,
    PermissionResultAllow,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TextBlock,
    create_sdk_mcp_server,
    delete_session,
    get_session_messages,
    list_sessions,
    query,
    tool,
)

from claude_agent_sdk.types import HookEvent

EVERYTHING = json.loads(os.environ["EVERYTHING"])
DENY_BASH = json.dumps({"permissions": {"deny": ["Bash"]}})


def place(name):
    """A directory of its own for each option, so that they can be tried side by side."""
    return os.path.realpath(tempfile.mkdtemp(prefix=f"{name}-", dir=os.getcwd()))


def options(**more):
    more = {"cli_path": os.environ["CENTURION"], "model": os.environ["MODEL"], "stderr": lambda _: None, **more}
    return ClaudeAgentOptions(**more)


async def once(prompt, **more):
    return [message async for message in query(prompt=prompt, options=options(**more))]


async def failure(prompt, **more):
    """What came before the end, and the error that the query ended with."""
    messages = []
    try:
        async for message in query(prompt=prompt, options=options(**more)):
            messages.append(message)
    except Exception as error:
        return messages, str(error)
    return messages, str(messages[-1])


def of(kind, messages):
    return [message for message in messages if isinstance(message, kind)]


def system(subtype, messages):
    return [message.data for message in of(SystemMessage, messages) if message.subtype == subtype]


def result(messages):
    return of(ResultMessage, messages)[-1]


def init(messages):
    return system("init", messages)[0]


def offers_bash(messages):
    return "Bash" in init(messages)["tools"]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


class Api:
    """A Messages API on this machine that keeps what it is sent: `answer` says what comes back."""

    def __init__(self, answer=lambda _: {"text": "Hello there."}):
        self.requests, api = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                api.requests.append((self.headers, body))
                told = answer(body)
                status, kind = told.get("status", 200), "text/event-stream"
                if status == 200:
                    data = "".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in events(told))
                else:
                    error = {"type": "not_found_error", "message": "there is no such model"}
                    data, kind = json.dumps({"type": "error", "error": error}), "application/json"
                data = data.encode()
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def env(self):
        return {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.server.server_port}", "ANTHROPIC_API_KEY": "test"}


def events(told):
    usage = told.get("usage", {"input_tokens": 9, "output_tokens": 3})
    blocks = told.get("blocks") or [{"type": "text", "text": told["text"]}]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": {**message, "usage": usage}}
    for index, block in enumerate(blocks):
        is_text = block["type"] == "text"
        empty = {"text": ""} if is_text else {"input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        words = {"type": "text_delta", "text": block["text"]} if is_text else {
            "type": "input_json_delta", "partial_json": json.dumps(block["input"])
        }
        yield {"type": "content_block_delta", "index": index, "delta": words}
        yield {"type": "content_block_stop", "index": index}
    reason = "end_turn" if all(block["type"] == "text" for block in blocks) else "tool_use"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


async def sent(**more):
    """What the model was sent for one prompt: headers and body."""
    api = Api()
    more = {"model": "claude-opus-4-6", **more, "env": {**more.get("env", {}), **api.env()}}
    await once("hello", **more)
    return api.requests[0]


def desk(judged=None):
    @tool("add", "Adds.", {"a": int, "b": int})
    async def add(given):
        return {"content": [{"type": "text", "text": f"sum is {given['a'] + given['b']}"}]}

    @tool("judge", "Judges.", {"tool_name": str, "input": dict})
    async def judge(given):
        judged.append(given["tool_name"])
        verdict = {"behavior": "allow", "updatedInput": given["input"]}
        return {"content": [{"type": "text", "text": json.dumps(verdict)}]}

    return create_sdk_mcp_server("desk", "1.0.0", [add, judge])


class Effects:
    """Each option, and what shows that it is in force."""

    async def tools(self, cwd):
        assert init(await once("@@hello", cwd=cwd, tools=["Read"]))["tools"] == ["Read"]
        assert init(await once("@@hello", cwd=cwd, tools=[]))["tools"] == []
        assert offers_bash(await once("@@hello", cwd=cwd, tools={"type": "preset", "preset": "claude_code"}))

    async def allowed_tools(self, cwd):
        await once("@@touch:first", cwd=cwd)
        await once("@@touch:second", cwd=cwd, allowed_tools=["Bash(touch *)"])
        assert (os.path.exists(f"{cwd}/first"), os.path.exists(f"{cwd}/second")) == (False, True)

    async def system_prompt(self, cwd):
        preset = {"type": "preset", "preset": "claude_code", "append": "Speak like a pirate."}
        file = {"type": "file", "path": write(f"{cwd}/prompt.md", "You are a parrot.")}
        for prompt, said in [
            ("You are a parrot.", "Squawk."), ({"type": "custom", "prompt": "You are a parrot."}, "Squawk."),
            (file, "Squawk."), (preset, "Arr."),
        ]:
            assert result(await once("hi", cwd=cwd, system_prompt=prompt)).result == said, prompt
        for snapshot in (True, False):
            _, body = await sent(cwd=cwd, system_prompt={"type": "preset", "preset": "claude_code", "snapshot": snapshot})
            assert cwd in json.dumps(body["system"])
        shared = {"type": "preset", "preset": "claude_code", "exclude_dynamic_sections": True}
        _, here = await sent(cwd=cwd, system_prompt=shared)
        _, there = await sent(cwd=place("elsewhere"), system_prompt=shared)
        assert here["system"] == there["system"] and cwd in json.dumps(here["messages"]), here["system"]

    async def mcp_servers(self, cwd):
        given = {"cwd": cwd, "allowed_tools": ["mcp__desk__add"]}
        assert result(await once("@@sum", mcp_servers={"desk": desk()}, **given)).result == "sum is 3"
        path = write(f"{cwd}/servers.json", json.dumps({"mcpServers": {"everything": EVERYTHING}}))
        for servers in (path, open(path, encoding="utf-8").read()):
            assert [it["name"] for it in init(await once("@@hello", mcp_servers=servers, **given))["mcp_servers"]] == ["everything"]
        # The methods of the client that are about servers.
        async with ClaudeSDKClient(options(mcp_servers={"everything": EVERYTHING}, **given)) as client:
            await client.query("@@hello")
            assert [message async for message in client.receive_response()]

            async def status():
                return [it["status"] for it in (await client.get_mcp_status())["mcpServers"]]

            assert await status() == ["connected"]
            await client.toggle_mcp_server("everything", False)
            assert await status() == ["disabled"]
            await client.toggle_mcp_server("everything", True)
            await client.reconnect_mcp_server("everything")
            assert await status() == ["connected"]

    async def strict_mcp_config(self, cwd):
        home = place("home")
        write(f"{home}/.claude.json", json.dumps({"mcpServers": {"everything": EVERYTHING}}))
        env = {"HOME": home, "CLAUDE_CONFIG_DIR": home}
        for strict, expected in ((False, ["desk", "everything"]), (True, ["desk"])):
            messages = await once("@@hello", cwd=cwd, env=env, mcp_servers={"desk": desk()}, strict_mcp_config=strict)
            assert sorted(it["name"] for it in init(messages)["mcp_servers"]) == expected, strict

    async def permission_mode(self, cwd):
        messages = await once(f"@@writes:{cwd}/made.txt", cwd=cwd, permission_mode="acceptEdits")
        assert init(messages)["permissionMode"] == "acceptEdits" and os.path.exists(f"{cwd}/made.txt")

    async def continue_conversation(self, cwd):
        first = result(await once("@@hello", cwd=cwd)).session_id
        assert result(await once("@@hello", cwd=cwd, continue_conversation=True)).session_id == first

    async def resume(self, cwd):
        first = result(await once("@@hello", cwd=cwd)).session_id
        assert result(await once("@@hello", cwd=cwd, resume=first)).session_id == first
        assert len(get_session_messages(first, cwd)) == 4

    async def session_id(self, cwd):
        chosen = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f21"
        assert result(await once("@@hello", cwd=cwd, session_id=chosen)).session_id == chosen

    async def max_turns(self, cwd):
        messages, _ = await failure("@@shell", cwd=cwd, max_turns=1, allowed_tools=["Bash"])
        assert result(messages).subtype == "error_max_turns"

    async def max_budget_usd(self, cwd):
        call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "true"}}
        api = Api(lambda _: {"blocks": [call], "usage": {"input_tokens": 1000, "output_tokens": 100_000}})
        given = {"cwd": cwd, "model": "claude-opus-4-6", "env": api.env(), "allowed_tools": ["Bash"]}
        messages, _ = await failure("go", max_budget_usd=1, **given)
        assert result(messages).subtype == "error_max_budget_usd" and len(api.requests) == 1

    async def disallowed_tools(self, cwd):
        assert not offers_bash(await once("@@hello", cwd=cwd, disallowed_tools=["Bash"]))

    async def model(self, cwd):
        assert (await sent(cwd=cwd, model="claude-sonnet-4-5"))[1]["model"] == "claude-sonnet-4-5"

    async def fallback_model(self, cwd):
        api = Api(lambda body: {"status": 404} if body["model"] == "claude-opus-4-6" else {"text": "from another"})
        given = {"cwd": cwd, "model": "claude-opus-4-6", "env": api.env()}
        assert result(await once("hello", fallback_model="claude-haiku-4-5", **given)).result == "from another"

    async def betas(self, cwd):
        headers, _ = await sent(cwd=cwd, betas=["context-1m-2025-08-07"])
        assert "context-1m-2025-08-07" in headers["anthropic-beta"]

    async def permission_prompt_tool_name(self, cwd):
        judged = []
        given = {"mcp_servers": {"desk": desk(judged)}, "permission_prompt_tool_name": "mcp__desk__judge"}
        await once("@@touch:judged", cwd=cwd, **given)
        assert judged == ["Bash"] and os.path.exists(f"{cwd}/judged"), judged

    async def cwd(self, cwd):
        assert init(await once("@@hello", cwd=cwd))["cwd"] == cwd

    async def cli_path(self, cwd):
        script = f"#!/bin/sh\necho started >> '{cwd}/started'\nexec '{os.environ['CENTURION']}' \"$@\"\n"
        wrapper = write(f"{cwd}/wrapper.sh", script)
        os.chmod(wrapper, 0o755)
        await once("@@hello", cwd=cwd, cli_path=wrapper)
        assert os.path.exists(f"{cwd}/started")

    async def settings(self, cwd):
        for settings in (DENY_BASH, write(f"{cwd}/own.json", DENY_BASH)):
            assert not offers_bash(await once("@@hello", cwd=cwd, settings=settings))

    async def add_dirs(self, cwd):
        other = place("other")
        write(f"{other}/far.txt", "far away\n")
        for dirs, is_read in (([], False), ([other], True)):
            said = result(await once(f"@@reads:{other}/far.txt", cwd=cwd, add_dirs=dirs)).result
            assert ("far away" in said) is is_read, said

    async def env(self, cwd):
        messages = await once("@@mark", cwd=cwd, env={"MARK": "of the host"}, allowed_tools=["Bash"])
        assert "mark is of the host" in result(messages).result

    async def extra_args(self, cwd):
        messages = await once("@@hello", cwd=cwd, extra_args={"include-partial-messages": None})
        assert of(StreamEvent, messages)

    async def max_buffer_size(self, cwd):
        _, error = await failure("@@hello", cwd=cwd, max_buffer_size=100)
        assert "buffer size" in error, error

    async def debug_stderr(self, cwd):
        # The SDK does not read it any more.
        assert result(await once("@@hello", cwd=cwd, debug_stderr=None)).result == "Hello there."

    async def stderr(self, cwd):
        lines = []
        await once("@@hello", cwd=cwd, stderr=lines.append, extra_args={"ide": None})
        assert any("--ide has no effect" in line for line in lines), lines

    async def can_use_tool(self, cwd):
        async def may_use(_, given, __):
            return PermissionResultAllow(updated_input={**given, "command": "touch other"})

        async with ClaudeSDKClient(options(cwd=cwd, can_use_tool=may_use)) as client:
            await client.query("@@touch:asked")
            assert [message async for message in client.receive_response()]
        assert (os.path.exists(f"{cwd}/asked"), os.path.exists(f"{cwd}/other")) == (False, True)

    async def hooks(self, cwd):
        async def add(*_):
            told = {"hookEventName": "UserPromptSubmit", "additionalContext": "the hook was here"}
            return {"hookSpecificOutput": told}

        _, body = await sent(cwd=cwd, hooks={"UserPromptSubmit": [HookMatcher(hooks=[add])]})
        assert "the hook was here" in json.dumps(body["messages"])
        # Every event that the SDK names.
        events = {name for literal in typing.get_args(HookEvent) for name in typing.get_args(literal)}
        heard = set()

        async def note(given, *_):
            heard.add(given["hook_event_name"])
            return {}

        async def may_use(*_):
            return PermissionResultAllow()

        given = {"hooks": {event: [HookMatcher(hooks=[note])] for event in events}, "can_use_tool": may_use}
        async with ClaudeSDKClient(options(cwd=cwd, **given)) as client:
            for prompt in ("@@touch:made", f"@@reads:{cwd}/missing", "@@lead", "/compact"):
                await client.query(prompt)
                assert [message async for message in client.receive_response()]
        assert heard == events, events - heard

    async def user(self, cwd):
        # A user of the machine, under which the SDK starts the program.
        import pwd

        me = pwd.getpwuid(os.getuid()).pw_name
        assert result(await once("@@hello", cwd=cwd, user=me)).result == "Hello there."

    async def include_partial_messages(self, cwd):
        assert of(StreamEvent, await once("@@hello", cwd=cwd, include_partial_messages=True))
        assert not of(StreamEvent, await once("@@hello", cwd=cwd))

    async def include_hook_events(self, cwd):
        async def nothing(*_):
            return {}

        hooks = {"Stop": [HookMatcher(hooks=[nothing])]}
        for included in (False, True):
            messages = await once("@@hello", cwd=cwd, hooks=hooks, include_hook_events=included)
            seen = [message for message in messages if getattr(message, "subtype", "") == "hook_started"]
            assert len(seen) == included, messages

    async def forward_subagent_text(self, cwd):
        for forwarded, expected in ((False, []), (True, ["I helped."])):
            messages = await once("@@lead", cwd=cwd, forward_subagent_text=forwarded, allowed_tools=["Bash"])
            said = [
                block.text
                for message in of(AssistantMessage, messages)
                if message.parent_tool_use_id
                for block in message.content
                if isinstance(block, TextBlock)
            ]
            assert said == expected, said

    async def verbatim_prompts(self, cwd):
        for verbatim in (False, True):
            said = result(await once("/cost", cwd=cwd, system_prompt="You are a parrot.", verbatim_prompts=verbatim)).result
            assert (said == "Squawk.") is verbatim, said

    async def fork_session(self, cwd):
        first = result(await once("@@hello", cwd=cwd)).session_id
        fork = result(await once("@@hello", cwd=cwd, resume=first, fork_session=True)).session_id
        assert fork != first and len(get_session_messages(fork, cwd)) == 4 and len(get_session_messages(first, cwd)) == 2

    async def resume_session_at(self, cwd):
        first = result(await once("@@hello", cwd=cwd)).session_id
        await once("@@hello", cwd=cwd, resume=first)
        kept = get_session_messages(first, cwd)[1].uuid
        await once("@@shell", cwd=cwd, resume=first, resume_session_at=kept, allowed_tools=["Bash"])
        assert "@@shell" in json.dumps(get_session_messages(first, cwd)[2].message)

    async def resume_drops_turn(self, cwd):
        first = result(await once("@@hello", cwd=cwd)).session_id
        for _ in range(2):
            await once("@@hello", cwd=cwd, resume=first)
        messages = get_session_messages(first, cwd)
        given = {"resume_session_at": messages[1].uuid, "resume_drops_turn": messages[2].uuid}
        _, error = await failure("@@hello", cwd=cwd, resume=first, **given)
        assert "Resume rejected by --resume-drops-turn:" in error, error

    async def agents(self, cwd):
        helper = AgentDefinition(description="Helps.", prompt="You help.", tools=["Bash"])
        messages = await once("@@lead_helper", cwd=cwd, agents={"helper": helper}, allowed_tools=["Bash"])
        assert of(TaskStartedMessage, messages)[0].data["subagent_type"] == "helper"
        assert of(TaskNotificationMessage, messages)[0].status == "completed"

    async def setting_sources(self, cwd):
        write(f"{cwd}/.claude/settings.json", DENY_BASH)
        write(f"{cwd}/CLAUDE.md", "Mind the cat.\n")
        for sources, is_read in ((["project"], True), ([], False)):
            assert offers_bash(await once("@@hello", cwd=cwd, setting_sources=sources)) is not is_read
            _, body = await sent(cwd=cwd, setting_sources=sources)
            assert ("Mind the cat" in json.dumps(body)) is is_read, sources

    async def skills(self, cwd):
        for name in ("one", "two"):
            write(f"{cwd}/.claude/skills/{name}/SKILL.md", f"---\ndescription: Does {name}.\n---\nDo {name}.\n")
        for skills, name, is_used in ((["one"], "one", True), (["one"], "two", False), ("all", "two", True)):
            given = {"skills": skills, "setting_sources": ["user", "project"]}
            said = result(await once(f"@@skill:{name}", cwd=cwd, **given)).result
            assert (f"Do {name}" in said) is is_used, (skills, name, said)

    async def sandbox(self, cwd):
        other = place("outside")
        sandbox = {"enabled": True, "autoAllowBashIfSandboxed": True, "filesystem": {"denyWrite": [other]}}
        await once(f"@@touch:{cwd}/inside", cwd=cwd, sandbox=sandbox)
        await once(f"@@touch:{other}/out", cwd=cwd, sandbox=sandbox)
        assert (os.path.exists(f"{cwd}/inside"), os.path.exists(f"{other}/out")) == (True, False)

    async def plugins(self, cwd):
        write(f"{cwd}/kit/.claude-plugin/plugin.json", json.dumps({"name": "kit"}))
        messages = await once("@@hello", cwd=cwd, plugins=[{"type": "local", "path": f"{cwd}/kit"}])
        assert "kit" in [it["name"] for it in init(messages)["plugins"]]

    async def max_thinking_tokens(self, cwd):
        _, body = await sent(cwd=cwd, model="claude-sonnet-4-5", max_thinking_tokens=3000)
        assert body["thinking"]["budget_tokens"] == 3000, body["thinking"]

    async def thinking(self, cwd):
        given = {"type": "enabled", "budget_tokens": 4000, "display": "summarized"}
        assert (await sent(cwd=cwd, thinking=given))[1]["thinking"] == given
        assert (await sent(cwd=cwd, thinking={"type": "adaptive"}))[1]["thinking"]["type"] == "adaptive"
        _, body = await sent(cwd=cwd, thinking={"type": "disabled"})
        assert body.get("thinking", {"type": "disabled"})["type"] == "disabled", body["thinking"]

    async def effort(self, cwd):
        assert (await sent(cwd=cwd, effort="low"))[1]["output_config"]["effort"] == "low"

    async def output_format(self, cwd):
        schema = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
        messages = await once("@@data", cwd=cwd, output_format={"type": "json_schema", "schema": schema})
        assert result(messages).structured_output == {"n": 7}

    async def enable_file_checkpointing(self, cwd):
        for enabled in (False, True):
            given = {"enable_file_checkpointing": enabled, "permission_mode": "acceptEdits"}
            path = f"{cwd}/made-{enabled}.txt"
            async with ClaudeSDKClient(options(cwd=cwd, extra_args={"replay-user-messages": None}, **given)) as client:
                await client.query(f"@@writes:{path}")
                messages = [message async for message in client.receive_response()]
                prompt = next(message.uuid for message in messages if getattr(message, "uuid", None) and type(message).__name__ == "UserMessage")
                try:
                    await client.rewind_files(prompt)
                except Exception as error:
                    assert not enabled, error
                assert os.path.exists(path) is not enabled

    async def session_store(self, cwd):
        store = InMemorySessionStore()
        first = result(await once("@@hello", cwd=cwd, session_store=store)).session_id
        delete_session(first, cwd)
        assert list_sessions(cwd) == []
        assert result(await once("@@hello", cwd=cwd, session_store=store, resume=first)).session_id == first

    async def session_store_flush(self, cwd):
        counts = []
        for flush in ("batched", "eager"):
            store, count = InMemorySessionStore(), 0
            append = store.append

            async def counted(*words, append=append):
                nonlocal count
                count += 1
                await append(*words)

            store.append = counted
            given = {"session_store": store, "session_store_flush": flush, "allowed_tools": ["Bash"]}
            await once("@@shell", cwd=cwd, **given)
            counts.append(count)
        assert counts[0] < counts[1], counts

    async def load_timeout_ms(self, cwd):
        store = InMemorySessionStore()

        async def never(*_):
            await asyncio.Event().wait()

        store.load = never
        given = {"session_store": store, "load_timeout_ms": 50, "resume": "6b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11"}
        _, error = await failure("@@hello", cwd=cwd, **given)
        assert "tim" in error and "out" in error, error

    async def task_budget(self, cwd):
        headers, body = await sent(cwd=cwd, task_budget={"total": 9000})
        assert body["output_config"]["task_budget"] == {"type": "tokens", "total": 9000}
        assert "task-budgets-2026-03-13" in headers["anthropic-beta"]

    async def client_app(self, cwd):
        headers, _ = await sent(cwd=cwd, client_app="my-app/1.0.0")
        assert "my-app/1.0.0" in headers["user-agent"]


async def main():
    effects = {name: effect for name, effect in vars(Effects).items() if not name.startswith("_")}
    declared = {field.name for field in dataclasses.fields(ClaudeAgentOptions)}
    assert set(effects) == declared, f"each option has a function here: {set(effects) ^ declared}"
    chosen = [name for name in effects if len(sys.argv) < 2 or name in sys.argv]
    failed = []

    async def work():
        while chosen:
            name = chosen.pop(0)
            try:
                await effects[name](Effects(), place(name))
            except Exception:
                failed.append(f"{name}: {traceback.format_exc()[-2000:]}")

    await asyncio.gather(work(), work(), work())
    if failed:
        sys.exit("\n".join(failed))


asyncio.run(main())
