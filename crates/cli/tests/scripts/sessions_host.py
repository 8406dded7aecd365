"""Drives the program by the SDK for Python, and uses every helper of the SDK for sessions on what the program wrote."""

import asyncio
import os

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    InMemorySessionStore,
    ResultMessage,
    delete_session,
    fork_session,
    get_session_info,
    get_session_info_from_store,
    get_session_messages,
    get_session_messages_from_store,
    get_subagent_messages,
    get_subagent_messages_from_store,
    list_sessions,
    list_sessions_from_store,
    list_subagents,
    list_subagents_from_store,
    query,
    rename_session,
    tag_session,
)

HERE = os.getcwd()


def options(**more):
    return ClaudeAgentOptions(cli_path=os.environ["CENTURION"], model=os.environ["MODEL"], **more)


async def ask(prompt, **more):
    """One query; returns its result and what was said."""
    said, result = [], None
    async for message in query(prompt=prompt, options=options(**more)):
        if isinstance(message, AssistantMessage):
            said += [block.text for block in message.content if hasattr(block, "text")]
        if isinstance(message, ResultMessage):
            result = message
    return result, said


def words(messages):
    """Texts of prompts and answers."""
    texts = []
    for message in messages:
        content = message.message["content"]
        texts += [content] if isinstance(content, str) else [part.get("text") for part in content if "text" in part]
    return texts


async def with_files():
    result, _ = await ask("@@lead first prompt")
    session = result.session_id
    assert [it.session_id for it in list_sessions(HERE)] == [session], list_sessions(HERE)
    info = get_session_info(session, HERE)
    assert info.first_prompt == "@@lead first prompt" and info.cwd == os.path.realpath(HERE), info
    assert words(get_session_messages(session, HERE)) == ["@@lead first prompt", "all done"], words(
        get_session_messages(session, HERE)
    )
    (agent,) = list_subagents(session, HERE)
    assert "I helped." in words(get_subagent_messages(session, agent, HERE))

    rename_session(session, "A better name", HERE)
    tag_session(session, "mine", HERE)
    info = get_session_info(session, HERE)
    assert (info.custom_title, info.tag) == ("A better name", "mine"), info

    fork = fork_session(session, HERE, title="The other way").session_id
    result, said = await ask("@@again fork prompt", resume=fork)
    assert result.session_id == fork and said == ["once more"], (result, said)
    messages = words(get_session_messages(fork, HERE))
    assert messages == ["@@lead first prompt", "all done", "@@again fork prompt", "once more"], messages
    assert get_session_info(fork, HERE).custom_title == "The other way"
    result, said = await ask("@@again second prompt", resume=session)
    assert len(get_session_messages(session, HERE)) > 3, "it is resumed where it is"
    assert get_session_info(session, HERE).custom_title == "A better name"

    delete_session(fork, HERE)
    assert [it.session_id for it in list_sessions(HERE)] == [session]
    return session


async def with_open_session(session):
    """A session that is open but idle in one process is resumed by another."""
    async with ClaudeSDKClient(options(resume=session)) as client:
        await client.query("@@again here")
        assert [m async for m in client.receive_response()][-1].is_error is False
        rename_session(session, "Named from outside", HERE)
        await client.query("@@again here too")
        assert [m async for m in client.receive_response()][-1].is_error is False
        result, said = await ask("@@again elsewhere", resume=session)
        assert said == ["once more"], said
        await client.query("@@again too late")
        result = [m async for m in client.receive_response()][-1]
        assert result.is_error and "another process has continued" in result.errors[0], result
    texts = words(get_session_messages(session, HERE))
    assert "@@again elsewhere" in texts and "@@again too late" not in texts, texts
    assert get_session_info(session, HERE).custom_title == "Named from outside"


async def with_store():
    """A store of the host has all that the files have, and a session is resumed from it alone."""
    store = InMemorySessionStore()
    result, _ = await ask("@@lead stored prompt", session_store=store)
    session = result.session_id
    stored = [it.session_id for it in await list_sessions_from_store(store, HERE)]
    assert stored == [session], stored
    assert (await get_session_info_from_store(store, session, HERE)).first_prompt == "@@lead stored prompt"
    from_store = words(await get_session_messages_from_store(store, session, HERE))
    assert from_store == words(get_session_messages(session, HERE)) != [], from_store
    (agent,) = await list_subagents_from_store(store, session, HERE)
    assert "I helped." in words(await get_subagent_messages_from_store(store, session, agent, HERE))

    delete_session(session, HERE)
    result, said = await ask("@@again from the store", session_store=store, resume=session)
    assert result.session_id == session and said == ["once more"], (result, said)
    from_store = words(await get_session_messages_from_store(store, session, HERE))
    assert from_store == ["@@lead stored prompt", "all done", "@@again from the store", "once more"], from_store

    result, _ = await ask("@@again forked", session_store=store, resume=session, fork_session=True)
    forked = words(await get_session_messages_from_store(store, result.session_id, HERE))
    assert forked[:2] == ["@@lead stored prompt", "all done"] and forked[-1] == "once more", forked


async def main():
    session = await with_files()
    await with_open_session(session)
    delete_session(session, HERE)
    await with_store()


asyncio.run(main())
