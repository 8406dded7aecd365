"""A host that gives every option which becomes a flag, and calls every method of the client, by the SDK for Python."""

import asyncio
import os

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage


async def say(client, text):
    """Says something and returns the messages up to its result."""
    await client.query(text)
    return [message async for message in client.receive_response()]


async def main():
    options = ClaudeAgentOptions(
        cli_path=os.environ["CENTURION"],
        model="claude-opus-4-6",
        fallback_model="haiku",
        betas=["context-1m-2025-08-07"],
        task_budget={"total": 9000},
        thinking={"type": "enabled", "budget_tokens": 4000, "display": "summarized"},
        effort="low",
        max_turns=7,
        max_budget_usd=1.5,
        allowed_tools=["Read"],
        disallowed_tools=["WebFetch"],
        permission_mode="acceptEdits",
        setting_sources=["user", "project"],
        strict_mcp_config=True,
        include_partial_messages=True,
        include_hook_events=True,
        extra_args={"replay-user-messages": "", "debug-to-stderr": None, "ide": None},
        stderr=lambda line: None,
    )
    # By hand what `async with` does.
    client = ClaudeSDKClient(options)
    await client.connect()
    assert (await client.get_server_info())["account"]
    await client.disconnect()
    async with ClaudeSDKClient(options) as client:
        info = await client.get_server_info()
        assert info["account"]["apiKeySource"] == "ANTHROPIC_API_KEY", info["account"]
        assert all(model["description"] for model in info["models"]), info["models"]

        result = (await say(client, "hello"))[-1]
        assert isinstance(result, ResultMessage) and not result.is_error, result

        usage = await client.get_context_usage()
        assert 0 < usage["totalTokens"] <= usage["maxTokens"], usage
        assert {"system_prompt", "messages"} <= {part["id"] for part in usage["categories"]}, usage
        assert (await client.get_mcp_status())["mcpServers"] == []
        await client.set_permission_mode("default")
        await client.set_model("haiku")
        await client.interrupt()
        for wrong in (
            client.stop_task("nobody"),
            client.toggle_mcp_server("nobody", True),
            client.reconnect_mcp_server("nobody"),
            client.rewind_files("nobody"),
        ):
            try:
                await wrong
            except Exception as error:
                assert "nobody" in str(error), error
            else:
                raise AssertionError("there is none")


asyncio.run(main())
