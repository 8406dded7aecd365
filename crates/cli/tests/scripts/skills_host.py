"""A host that lists and runs a skill and a command, by the SDK for Python."""

import asyncio
import os

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, SystemMessage


async def say(client, text):
    """Says something and returns the messages up to its result."""
    await client.query(text)
    return [message async for message in client.receive_response()]


def result(messages):
    return next(message for message in messages if isinstance(message, ResultMessage))


async def main():
    options = ClaudeAgentOptions(
        cli_path=os.environ["CENTURION"],
        model=os.environ["MODEL"],
        setting_sources=["user", "project"],
        skills=["greet", "rules"],
    )
    async with ClaudeSDKClient(options) as client:
        info = await client.get_server_info()
        commands = {command["name"]: command for command in info["commands"]}
        assert commands["greet"]["description"] == "Greets.", commands
        assert commands["greet"]["argumentHint"] == "[name]", commands
        assert "fix" in commands and "compact" in commands, commands

        messages = await say(client, "/greet World")
        init = next(it for it in messages if isinstance(it, SystemMessage) and it.subtype == "init")
        assert "greet" in init.data["slash_commands"] and "greet" in init.data["skills"], init.data
        # Models may invoke the chosen ones alone; a person may type all.
        assert "rules" in init.data["skills"] and "fix" not in init.data["skills"], init.data
        assert result(messages).result == "greeted World", result(messages)

        fixed = result(await say(client, "/fix bug 7"))
        assert fixed.result == "fixed bug 7", fixed
        used = result(await say(client, "@@asks"))
        assert used.result == "used it", used

        shown = result(await say(client, "/cost"))
        assert shown.result.startswith("Total cost:") and not shown.is_error, shown
        missing = result(await say(client, "/gret"))
        assert missing.is_error and "did you mean /greet?" in str(missing.result), missing


asyncio.run(main())
