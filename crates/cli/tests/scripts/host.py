"""A host of the tests: drives the program with the SDK as any program in Python would."""

import asyncio
import json
import os

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SystemMessage,
    TextBlock,
    create_sdk_mcp_server,
    query,
    tool,
)


@tool("multiply", "Multiplies two numbers", {"a": int, "b": int})
async def multiply(arguments):
    return {"content": [{"type": "text", "text": str(arguments["a"] * arguments["b"])}]}


@tool("fail", "Fails", {})
async def fail(_):
    return {"content": [{"type": "text", "text": "it did not work"}], "is_error": True}


def options(**more):
    server = create_sdk_mcp_server("calculator", "1.0.0", [multiply, fail])
    return ClaudeAgentOptions(cli_path=os.environ["CENTURION"], mcp_servers={"calc": server}, **more)


def told(messages):
    """The last text of the model, and the result."""
    texts = [
        block.text
        for message in messages
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, TextBlock)
    ]
    results = [message for message in messages if isinstance(message, ResultMessage)]
    assert len(results) == 1, messages
    return texts[-1], results[0]


async def one_question():
    prompt = 'call mcp__calc__multiply {"a": 6, "b": 7}'
    messages = [message async for message in query(prompt=prompt, options=options(allowed_tools=["mcp__calc"]))]
    starts = [it for it in messages if isinstance(it, SystemMessage) and it.subtype == "init"]
    assert [server["status"] for server in starts[0].data["mcp_servers"]] == ["connected"], starts
    text, result = told(messages)
    assert text == "result: 42", text
    assert result.result == text and not result.is_error, result


async def conversation():
    hooked, asked = [], []

    async def before(given, call, _):
        hooked.append((given["hook_event_name"], given["tool_name"], call))
        if given["tool_input"]["file_path"].endswith("/hooked.txt"):
            return {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "the hook says no",
                }
            }
        return {}

    async def may_use(name, given, _):
        asked.append(name)
        if given.get("file_path", "").endswith("allowed.txt"):
            return PermissionResultAllow(updated_input={**given, "content": "changed by the host"})
        return PermissionResultDeny(message="the host says no")

    chosen = options(
        can_use_tool=may_use,
        hooks={"PreToolUse": [HookMatcher(matcher="Write", hooks=[before])]},
    )
    async with ClaudeSDKClient(options=chosen) as client:

        async def say(prompt):
            await client.query(prompt)
            return told([message async for message in client.receive_response()])

        def write(file):
            return f"call Write {json.dumps({'file_path': file, 'content': 'x'})}"

        text, _ = await say("hello")
        assert text == "you said: hello", text
        text, result = await say(write("hooked.txt"))
        assert "the hook says no" in text, text
        assert asked == [], asked
        text, result = await say(write("denied.txt"))
        assert "the host says no" in text, text
        assert len(result.permission_denials or []) == 1, result
        await say(write("allowed.txt"))
        text, _ = await say("call mcp__calc__fail {}")
        assert "the host says no" in text, text
        await client.set_permission_mode("acceptEdits")
        text, _ = await say("and now?")
        assert text == "you said: and now?", text
        status = await client.get_mcp_status()
        assert [it["status"] for it in status["mcpServers"]] == ["connected"], status
    assert [tool for _, tool, _ in hooked] == ["Write"] * 3, hooked
    assert all(event == "PreToolUse" and call.startswith("toolu_") for event, _, call in hooked), hooked
    assert asked == ["Write", "Write", "mcp__calc__fail"], asked


async def main():
    await one_question()
    await conversation()


asyncio.run(main())
