// A host that uses options of a query at length, by the SDK for TypeScript: permissions, hooks, agents, sessions.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Conversation, all, assert, of, options, result, run, sdk, z } from "./sdk_kit.mjs";

const once = (prompt, more) => all(sdk.query({ prompt, options: options(more) }));

async function permissions() {
  const asked = [];
  const canUseTool = async (name, input, about) => {
    asked.push([name, about]);
    if (name === "Write") {
      return { behavior: "allow", updatedInput: { ...input, content: "changed by the host" } };
    }
    return { behavior: "deny", message: "not today" };
  };
  const talk = new Conversation({ canUseTool });
  await talk.say("@@write");
  assert.equal(readFileSync("made.txt", "utf8"), "changed by the host");
  const [[, write]] = asked;
  assert.equal(write.blockedPath, `${process.cwd()}/made.txt`);
  assert(write.toolUseID && write.suggestions.length > 0 && write.decisionReason, JSON.stringify(write));

  const denied = await talk.say("@@touch:denied.txt");
  assert.match(result(denied).result, /not today/);
  assert(!existsSync("denied.txt"));
  assert.equal(result(denied).permission_denials[0].tool_name, "Bash");
  assert.equal(asked[1][1].description, "Touch a file");
  await talk.end();
}

async function hooks() {
  const fired = [];
  const note = async (input) => {
    fired.push(input.hook_event_name);
    return {};
  };
  const refuse = async (input) => ({
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: input.tool_input.command.includes("hooked") ? "deny" : "allow",
      permissionDecisionReason: "a hook says no",
    },
  });
  const plain = Object.fromEntries(sdk.HOOK_EVENTS.map((event) => [event, [{ hooks: [note] }]]));
  plain.PreToolUse = [{ matcher: "Bash", hooks: [note, refuse] }];
  const talk = new Conversation({ hooks: plain, includeHookEvents: true });
  const messages = await talk.say("@@touch:hooked.txt");
  assert.match(result(messages).result, /a hook says no/);
  assert(!existsSync("hooked.txt"));
  assert.match(result(await talk.say("@@shell")).result, /from the shell/);
  await talk.say("@@lead");
  await talk.end();
  for (const event of [
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolBatch", "SubagentStart",
    "SubagentStop", "Stop",
  ]) {
    assert(fired.includes(event), `${event} is not among ${fired}`);
  }
  assert(of(messages, "hook_started").length > 0 && of(messages, "hook_response").length > 0);
}

async function agents() {
  const helper = { description: "Helps.", prompt: "You help.", tools: ["Bash"] };
  const talk = new Conversation({ agents: { helper }, forwardSubagentText: true });
  const waited = await talk.say("@@lead_helper");
  assert.equal(result(waited).result, "all done");
  const [started] = of(waited, "task_started");
  assert.deepEqual([started.subagent_type, started.is_backgrounded], ["helper", false]);
  const [told] = of(waited, "task_notification");
  assert.deepEqual([told.status, told.summary], ["completed", "I helped."]);
  const children = of(waited, "assistant").filter((it) => it.parent_tool_use_id === started.tool_use_id);
  assert(children.some((it) => it.message.content[0].type === "tool_use"));

  const behind = await talk.say("@@behind");
  assert.equal(result(behind).result, "meanwhile");
  const [later] = of(behind, "task_started");
  assert.equal(later.is_backgrounded, true);
  assert.equal(result(await talk.until((it) => it.type === "result")).result, "heard of it");
  await talk.end();
}

async function sessions() {
  const first = await once("@@hello");
  const id = result(first).session_id;
  const resumed = await once("@@hello", { resume: id });
  assert.equal(result(resumed).session_id, id);
  const continued = await once("@@hello", { continue: true });
  assert.equal(result(continued).session_id, id);
  const forked = await once("@@hello", { resume: id, forkSession: true });
  assert.notEqual(result(forked).session_id, id);
  const named = "6b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11";
  assert.equal(result(await once("@@hello", { sessionId: named })).session_id, named);

  const dir = process.cwd();
  const ids = (await sdk.listSessions({ dir })).map((it) => it.sessionId);
  for (const each of [id, named, result(forked).session_id]) assert(ids.includes(each), `${each}: ${ids}`);
  const said = await sdk.getSessionMessages(id, { dir });
  assert.deepEqual(said.map((it) => it.type), ["user", "assistant", "user", "assistant", "user", "assistant"]);
  await sdk.renameSession(id, "A new name", { dir });
  await sdk.tagSession(id, "kept", { dir });
  const info = await sdk.getSessionInfo(id, { dir });
  assert.deepEqual([info.customTitle ?? info.summary, info.tag], ["A new name", "kept"]);
  const copy = await sdk.forkSession(id, { dir });
  assert.equal(result(await once("@@hello", { resume: copy.sessionId })).session_id, copy.sessionId);
  await sdk.deleteSession(copy.sessionId, { dir });
  assert(!(await sdk.listSessions({ dir })).some((it) => it.sessionId === copy.sessionId));
}

async function helpers() {
  const dir = process.cwd();
  const id = result(await once("@@lead", { allowedTools: ["Bash"] })).session_id;
  const [agent] = await sdk.listSubagents(id, { dir });
  const said = JSON.stringify(await sdk.getSubagentMessages(id, agent, { dir }));
  assert.match(said, /I helped\./);
  const store = new sdk.InMemorySessionStore();
  await sdk.importSessionToStore(id, store, { dir });
  assert.match(JSON.stringify(await sdk.getSessionMessages(id, { dir, sessionStore: store })), /all done/);

  const isArchived = async () => (await sdk.listSessions({ dir })).find((it) => it.sessionId === id).archived ?? false;
  await sdk.archiveSession(id, { dir });
  assert.equal(await isArchived(), true);
  await sdk.unarchiveSession(id, { dir });
  assert.equal(await isArchived(), false);
  await sdk.archiveSession(id, { dir });
  await once("@@hello", { resume: id });
  assert.equal(await isArchived(), false, "a prompt takes it out again");

  const warm = await sdk.startup({ options: options() });
  assert.equal(result(await all(warm.query("@@hello"))).result, "Hello there.");
  (await sdk.startup({ options: options() })).close();
}

async function restrictions() {
  const ran = [];
  const shape = { a: z.number().optional(), command: z.string().optional() };
  const add = sdk.tool("add", "Adds.", shape, async (input) => {
    ran.push(input);
    return { content: [{ type: "text", text: "sum is 3" }] };
  });
  const desk = (tools) => ({ ...sdk.createSdkMcpServer({ name: "desk", tools: [add] }), tools });

  await once("@@touch:aliased.txt", {
    mcpServers: { desk: desk() }, toolAliases: { Bash: "mcp__desk__add" }, allowedTools: ["Bash", "mcp__desk__add"],
  });
  assert.deepEqual(ran.map((input) => input.command), ["touch aliased.txt"]);
  assert(!existsSync("aliased.txt"), "the tool of the program ran");

  const policy = (permission_policy) => [{ name: "add", permission_policy }];
  const allowedTools = ["mcp__desk__add"];
  await once("@@sum_or_not", { mcpServers: { desk: desk(policy("always_deny")) }, allowedTools });
  assert.equal(ran.length, 1);
  const asked = [];
  const canUseTool = async (name) => {
    asked.push(name);
    return { behavior: "deny", message: "not today" };
  };
  const talk = new Conversation({ mcpServers: { desk: desk(policy("always_ask")) }, allowedTools, canUseTool });
  await talk.say("@@sum_or_not");
  await talk.end();
  assert.deepEqual([asked, ran.length], [["mcp__desk__add"], 1]);

  for (const [onFailure, runs] of [["block", false], ["continue", true]]) {
    const fail = async () => {
      throw new Error("broken");
    };
    const hooks = { PreToolUse: [{ matcher: "Bash", onFailure, hooks: [fail] }] };
    await once(`@@touch:${onFailure}.txt`, { hooks, allowedTools: ["Bash"] });
    assert.equal(existsSync(`${onFailure}.txt`), runs, onFailure);
  }

  const parrot = { systemPrompt: "You are a parrot." };
  assert.equal(result(await once("/cost", { ...parrot, verbatimPrompts: true })).result, "Squawk.");
  assert.notEqual(result(await once("/cost", parrot)).result, "Squawk.");
}

async function beginnings() {
  const dir = process.cwd();
  const id = result(await once("@@hello", { title: "A title" })).session_id;
  assert.equal((await sdk.getSessionInfo(id, { dir })).customTitle, "A title");

  const path = `${dir}/serving`;
  mkdirSync(`${path}/.claude-plugin`, { recursive: true });
  writeFileSync(`${path}/.claude-plugin/plugin.json`, JSON.stringify({ name: "serving" }));
  writeFileSync(`${path}/.mcp.json`, JSON.stringify({ mcpServers: { everything: JSON.parse(process.env.EVERYTHING) } }));
  for (const pluginDelivery of ["initialize", "argv"]) {
    for (const skipMcpDiscovery of [true, false]) {
      const plugins = [{ type: "local", path, skipMcpDiscovery }];
      const [init] = of(await once("@@hello", { plugins, pluginDelivery }), "init");
      assert(init.plugins.some((plugin) => plugin.name === "serving"), pluginDelivery);
      assert.equal(init.mcp_servers.length, skipMcpDiscovery ? 0 : 1, pluginDelivery);
    }
  }

  const thinking = { type: "enabled", budgetTokens: 2000, display: "highlights" };
  assert.match(result(await once("@@hello", { thinking })).result, /Hello there/);
}

await run(permissions, hooks, agents, sessions, helpers, restrictions, beginnings);
