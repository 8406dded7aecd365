"""A host of the tests: brings an agent, watches agents at work, is asked for them, and ends one."""

import asyncio
import os

from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    ResultMessage,
    SystemMessage,
    TaskNotificationMessage,
    TaskProgressMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    TextBlock,
    query,
)

HELPER = AgentDefinition(description="Helps.", prompt="You help.", tools=["Bash"])


def options(**more):
    return ClaudeAgentOptions(
        cli_path=os.environ["CENTURION"], model=os.environ["MODEL"], agents={"helper": HELPER}, **more
    )


def of(kind, messages):
    return [message for message in messages if isinstance(message, kind)]


async def until(client, fits):
    messages = []
    async for message in client.receive_messages():
        messages.append(message)
        if fits(message):
            return messages
    raise AssertionError(f"the program ended early: {messages}")


def is_result(message):
    return isinstance(message, ResultMessage)


async def waited_for():
    asked = []

    async def may_use(name, given, context):
        asked.append((name, context.agent_id))
        return PermissionResultAllow()

    kit = {"type": "local", "path": os.path.abspath("kit")}
    async with ClaudeSDKClient(options=options(can_use_tool=may_use, plugins=[kit])) as client:
        info = await client.get_server_info()
        assert "helper" in [agent["name"] for agent in info["agents"]], info
        await client.query("@@lead")
        messages = await until(client, is_result)
        (init,) = [it for it in of(SystemMessage, messages) if it.subtype == "init"]
        assert "helper" in init.data["agents"], init
        assert "kit:greet" in init.data["skills"], init
        assert [(it["name"], it["path"]) for it in init.data["plugins"]] == [("kit", kit["path"])], init
        (started,) = of(TaskStartedMessage, messages)
        assert started.task_type == "local_agent" and started.data["subagent_type"] == "helper", started
        (progress,) = of(TaskProgressMessage, messages)
        assert progress.last_tool_name == "Bash" and progress.usage["tool_uses"] == 1, progress
        assert [message.status for message in of(TaskUpdatedMessage, messages)] == ["completed"]
        (ended,) = of(TaskNotificationMessage, messages)
        assert (ended.status, ended.summary) == ("completed", "I helped."), ended
        assert ended.task_id == started.task_id and ended.tool_use_id == started.tool_use_id
        assert asked == [("Bash", started.task_id)], asked
        children = [it for it in of(AssistantMessage, messages) if it.parent_tool_use_id]
        assert [it.parent_tool_use_id for it in children] == [started.tool_use_id], children
        assert messages[-1].result == "all done", messages[-1]
        states = [it.data["state"] for it in of(SystemMessage, messages) if it.subtype == "session_state_changed"]
        assert states == ["running", "requires_action", "running"], states


async def moved_and_stopped():
    async with ClaudeSDKClient(options=options(allowed_tools=["Bash"])) as client:
        await client.query("@@waits")
        messages = await until(client, lambda it: isinstance(it, TaskProgressMessage))
        (started,) = of(TaskStartedMessage, messages)
        # The SDK has no method for this one.
        await client._query._send_control_request({"subtype": "background_tasks"})
        messages = await until(client, is_result)
        moved = of(TaskUpdatedMessage, messages)[0]
        assert moved.patch == {"is_backgrounded": True}, moved
        assert messages[-1].result == "not waiting", messages[-1]
        await client.stop_task(started.task_id)
        messages = await until(client, is_result)
        assert [it.status for it in of(TaskUpdatedMessage, messages)] == ["killed"], messages
        assert [it.status for it in of(TaskNotificationMessage, messages)] == ["stopped"], messages
        assert messages[-1].result == "heard of it", messages[-1]


async def one_question_with_an_agent_behind():
    messages = [it async for it in query(prompt="@@behind", options=options(allowed_tools=["Bash"]))]
    assert [it.result for it in of(ResultMessage, messages)] == ["meanwhile", "heard of it"], messages
    (started,) = of(TaskStartedMessage, messages)
    assert started.data["is_backgrounded"] is True, started
    said = [
        block.text
        for message in of(AssistantMessage, messages)
        if message.parent_tool_use_id
        for block in message.content
        if isinstance(block, TextBlock)
    ]
    assert said == ["I helped."], said


async def main():
    await waited_for()
    await moved_and_stopped()
    await one_question_with_an_agent_behind()


asyncio.run(main())
