// A host that calls every method of a query, by the SDK for TypeScript.

import { readFileSync, statSync, mkdirSync, writeFileSync } from "node:fs";
import { Conversation, assert, of, result, run, sdk, user, z } from "./sdk_kit.mjs";

/** The methods of a query that were called. */
const called = new Set();

/** A conversation whose query takes note of what is called. */
function conversation(more) {
  const talk = new Conversation(more);
  talk.query = new Proxy(talk.query, {
    get(query, name) {
      if (typeof query[name] !== "function") return query[name];
      called.add(name);
      return query[name].bind(query);
    },
  });
  return talk;
}

const desk = sdk.createSdkMcpServer({
  name: "desk",
  tools: [
    sdk.tool("add", "Adds numbers.", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
      content: [{ type: "text", text: `sum is ${a + b}` }],
    })),
  ],
});

async function settings() {
  const talk = conversation();
  const { query } = talk;
  await talk.say("@@hello");
  await query.setPermissionMode("acceptEdits");
  await talk.until((it) => it.subtype === "status" && it.permissionMode === "acceptEdits");
  await query.setModel("haiku");
  assert.equal((await query.getSettings()).applied.model, "claude-haiku-5-5");
  await query.setModel();
  await query.setMaxThinkingTokens(1000);
  await query.setMaxThinkingTokens(null);

  await query.applyFlagSettings({ effortLevel: "low", permissions: { deny: ["Bash"] } });
  let known = await query.getSettings();
  assert.equal(known.applied.effort, "low");
  assert.deepEqual(known.effective.permissions.deny, ["Bash"]);
  assert.deepEqual(known.sources.at(-1).source, "flagSettings");
  assert.match(result(await talk.say("@@shell")).result, /the tool is not offered: the rule `Bash` from --settings/);
  await query.applyFlagSettings({ permissions: null, effortLevel: null });
  known = await query.getSettings();
  assert.equal(known.effective.permissions?.deny, undefined);
  assert.match(result(await talk.say("@@shell")).result, /from the shell/);
  await assert.rejects(query.applyFlagSettings({ effortLevel: "huge" }));

  await query.updateSettings("localSettings", { outputStyle: "default" });
  const written = JSON.parse(readFileSync(".claude/settings.local.json", "utf8"));
  assert.equal(written.outputStyle, "default");
  await assert.rejects(query.updateSettings("localSettings", { model: "opus" }));
  await assert.rejects(query.updateSettings("userSettings", { effortLevel: "max" }));

  const rules = (await query.listPermissionRules()).state;
  assert.equal(rules.originalCwd, process.cwd());
  assert((await query.getHooksListing()).eventCatalog.some((it) => it.name === "PreToolUse"));
  await talk.end();
}

async function looks() {
  const talk = conversation();
  const { query } = talk;
  await talk.say("@@hello");
  const begun = await query.initializationResult();
  assert(begun.commands.length > 0 && begun.output_style === "default", JSON.stringify(begun));
  assert.deepEqual(Object.keys(await query.reinitialize()), Object.keys(begun));
  assert((await query.supportedCommands()).some((it) => it.name === "compact"));
  for (const model of await query.supportedModels()) {
    assert(model.value && model.displayName && model.description && model.resolvedModel, model.value);
    assert.equal(typeof model.supportsEffort, "boolean");
  }
  assert((await query.supportedAgents()).some((it) => it.name === "general-purpose"));
  assert.equal(typeof (await query.accountInfo()).apiKeySource, "string");
  for (const detail of ["full", "summary"]) {
    const usage = await query.getContextUsage({ detail });
    assert(usage.totalTokens > 0 && usage.totalTokens <= usage.maxTokens, JSON.stringify(usage));
    const used = usage.categories.filter((it) => it.kind === "used");
    assert.equal(used.reduce((sum, it) => sum + it.tokens, 0), usage.totalTokens);
  }
  const { session } = await query.usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET();
  assert(Object.values(session.model_usage)[0].inputTokens > 0, JSON.stringify(session));

  mkdirSync(".claude/skills/late", { recursive: true });
  writeFileSync(".claude/skills/late/SKILL.md", "---\ndescription: Came late.\n---\nLate.\n");
  const late = (await query.reloadSkills()).skills.find((it) => it.name === "late");
  assert.equal(late?.description, "Came late.");
  assert((await query.reloadPlugins()).commands.some((it) => it.name === "late"));
  assert((await query.reloadPlugins({ refuseIfBusy: true })).agents.length > 0);
  assert((await query.reloadOutputStyles()).available_output_styles.includes("default"));
  await query.renameSession("a name");
  assert.match((await query.askSideQuestion("@@aside")).response, /beside it/);
  await talk.end();
}

async function files() {
  const talk = conversation({ permissionMode: "acceptEdits", enableFileCheckpointing: true });
  const { query } = talk;
  const id = "5b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11";
  await talk.say("@@hello", { uuid: id });
  assert.equal((await query.readFile("notes.txt")).contents, "first line\n");
  const bytes = await query.readFile("notes.txt", { maxBytes: 5, encoding: "base64" });
  assert.deepEqual([atob(bytes.contents), bytes.truncated], ["first", true]);
  assert.equal(await query.readFile("/etc/passwd"), null, "it is outside");
  assert.equal(await query.readFile("missing.txt"), null);

  assert.match(result(await talk.say("@@edit")).result, /edit gave: .*[Rr]ead/s);
  await query.seedReadState("notes.txt", 5);
  assert.match(result(await talk.say("@@edit")).result, /edit gave: .*[Rr]ead/s, "it changed since");
  await query.seedReadState("notes.txt", Math.floor(statSync("notes.txt").mtimeMs));
  await talk.say("@@edit");
  assert.equal(readFileSync("notes.txt", "utf8"), "second line\n");
  const trial = await query.rewindFiles(id, { dryRun: true });
  assert.deepEqual([trial.canRewind, trial.insertions, trial.deletions], [true, 1, 1]);
  assert.equal(readFileSync("notes.txt", "utf8"), "second line\n");
  await query.rewindFiles(id);
  assert.equal(readFileSync("notes.txt", "utf8"), "first line\n");
  await assert.rejects(query.rewindFiles("nobody"), /nobody/);
  await talk.end();
}

async function servers() {
  const broken = { type: "stdio", command: "no-such-program-anywhere" };
  const talk = conversation({ mcpServers: { desk, broken }, allowedTools: ["mcp__desk__add"] });
  const { query } = talk;
  assert.equal(result(await talk.say("@@sum")).result, "sum is 3");
  const status = Object.fromEntries((await query.mcpServerStatus()).map((it) => [it.name, it]));
  assert.deepEqual([status.desk.status, status.desk.source], ["connected", "sdk"]);
  assert.equal(status.desk.serverInfo.name, "desk");
  assert.deepEqual(status.desk.tools.map((it) => it.name), ["add"]);
  assert.equal(status.broken.status, "failed");
  assert.match(status.broken.error, /no-such-program-anywhere/);
  assert.equal(status.broken.config.command, "no-such-program-anywhere");
  await assert.rejects(query.reconnectMcpServer("broken"), /broken/);
  await query.toggleMcpServer("desk", false);
  assert.equal((await query.mcpServerStatus()).find((it) => it.name === "desk").status, "disabled");
  await query.toggleMcpServer("desk", true);
  await assert.rejects(query.readMcpResource("desk", "https://example.com"), /ui:/);
  // A server that lives in the host says by itself that it has another tool.
  desk.instance.registerTool("twice", { inputSchema: { a: z.number() } }, async ({ a }) => ({
    content: [{ type: "text", text: `${2 * a}` }],
  }));
  const offered = async () => (await query.mcpServerStatus()).find((it) => it.name === "desk").tools.map((it) => it.name);
  while (!(await offered()).includes("twice"));
  assert.deepEqual(await query.setMcpPermissionModeOverride("desk", "default"), {});
  assert.match((await query.setMcpPermissionModeOverride("nobody", null)).warning, /nobody/);

  // A prompt that follows at once has the tools of the new server.
  const everything = JSON.parse(process.env.EVERYTHING);
  const setting = query.setMcpServers({ everything, wrong: { type: "stdio" } });
  const [init] = of(await talk.say("@@hello"), "init");
  assert(init.tools.includes("mcp__everything__echo"), String(init.tools));
  const changed = await setting;
  assert.deepEqual([changed.added, changed.removed], [["everything"], ["desk"]]);
  assert.match(changed.errors.wrong, /command/);
  assert.deepEqual((await query.setMcpServers({})).removed, ["everything"]);
  await talk.end();
}

async function tasks() {
  const talk = conversation({ allowedTools: ["Bash"] });
  const { query } = talk;
  await talk.say("@@hello");
  assert.equal(await query.backgroundTasks(), true);
  assert.equal(await query.backgroundTasks("toolu_nobody"), false);
  await assert.rejects(query.stopTask("nobody"), /nobody/);

  // A command that runs is moved, and its call goes on.
  talk.submit("@@sleep");
  const [, call] = await talk
    .until((it) => it.type === "assistant" && it.message.content[0].type === "tool_use")
    .then((messages) => [messages, messages.at(-1).message.content[0]]);
  while (!(await query.backgroundTasks(call.id))) await new Promise(setImmediate);
  let messages = await talk.until((it) => it.type === "result");
  assert.equal(result(messages).result, "went on");
  const [started] = of(messages, "task_started");
  assert.deepEqual([started.task_type, started.tool_use_id], ["local_bash", call.id]);
  while (!(await query.getTaskOutput(started.task_id)).output.includes("about to sleep"));
  await query.stopTask(started.task_id);
  messages = await talk.until((it) => it.subtype === "task_notification");
  assert.deepEqual([messages.at(-1).status, messages.at(-1).task_id], ["stopped", started.task_id]);

  // One that is under way is interrupted, and what waits is told.
  talk.submit("@@sleep");
  await talk.until((it) => it.type === "assistant" && it.message.content[0].type === "tool_use");
  const { still_queued } = await query.interrupt();
  assert.deepEqual(still_queued, []);
  const ended = await talk.until((it) => it.type === "result");
  assert.equal(result(ended).subtype, "error_during_execution");
  await query.streamInput((async function* () { yield user("@@hello"); })());
  assert.equal(result(await talk.until((it) => it.type === "result")).result, "Hello there.");
  query.close();
}

/** No method that the SDK declares was left out. */
async function all() {
  const types = readFileSync(`${process.env.CLIENTS}/@anthropic-ai/claude-agent-sdk/sdk.d.ts`, "utf8");
  const [body] = types.split("export declare interface Query ")[1].split("\n}");
  const declared = [...body.matchAll(/^ {4}(\w+)\(/gm)].map((it) => it[1]);
  assert(declared.length > 25, String(declared));
  assert.deepEqual(declared.filter((name) => !called.has(name)), []);
}

await run(settings, looks, files, servers, tasks, all);
