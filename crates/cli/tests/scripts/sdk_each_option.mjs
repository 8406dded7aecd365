// A host that gives each option of a query once, by the SDK for TypeScript, and looks at what it does.

import { execFileSync, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Api, Conversation, all, assert, of, options, result, sdk, z } from "./sdk_kit.mjs";

const everything = JSON.parse(process.env.EVERYTHING);

/** A directory of its own for each option, so that they can be tried side by side. */
const place = (name) => mkdtempSync(join(process.cwd(), `${name}-`));

const once = (prompt, more) => all(sdk.query({ prompt, options: options(more) }));

/** The error that a query ends with, and what came before it. */
const failure = async (prompt, more) => {
  const messages = [];
  try {
    for await (const message of sdk.query({ prompt, options: options(more) })) messages.push(message);
  } catch (error) {
    return { messages, error: String(error) };
  }
  return { messages, error: JSON.stringify(result(messages)) };
};

const init = (messages) => of(messages, "init")[0];

/** A program that writes down how it was started and becomes ours. */
function wrapper(cwd) {
  const path = join(cwd, "wrapper.sh");
  writeFileSync(path, `#!/bin/sh\necho started >> '${cwd}/started'\nexec '${process.env.CENTURION}' "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}

function plugin(cwd) {
  mkdirSync(`${cwd}/kit/.claude-plugin`, { recursive: true });
  writeFileSync(`${cwd}/kit/.claude-plugin/plugin.json`, JSON.stringify({ name: "kit" }));
  return [{ type: "local", path: `${cwd}/kit` }];
}

function skill(cwd, name) {
  mkdirSync(`${cwd}/.claude/skills/${name}`, { recursive: true });
  writeFileSync(`${cwd}/.claude/skills/${name}/SKILL.md`, `---\ndescription: Does ${name}.\n---\nDo ${name}.\n`);
}

/** A desk in the host: a tool, and one that judges calls. */
const desk = (judged = []) =>
  sdk.createSdkMcpServer({
    name: "desk",
    tools: [
      sdk.tool("add", "Adds.", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
        content: [{ type: "text", text: `sum is ${a + b}` }],
      })),
      sdk.tool("run", "Runs.", { command: z.string() }, async ({ command }) => ({
        content: [{ type: "text", text: `the host got ${command}` }],
      })),
      sdk.tool("judge", "Judges.", { tool_name: z.string(), input: z.any() }, async ({ tool_name, input }) => {
        judged.push(tool_name);
        return { content: [{ type: "text", text: JSON.stringify({ behavior: "allow", updatedInput: input }) }] };
      }),
    ],
  });

const DENY_BASH = { permissions: { deny: ["Bash"] } };

const offersBash = (messages) => init(messages).tools.includes("Bash");

/** What the model was sent for one prompt. */
const sent = async (cwd, more, prompt = "hello") => {
  const api = await Api.start();
  const messages = await once(prompt, { cwd, model: "claude-opus-4-6", ...more, env: api.env(more.env) });
  api.stop();
  return { ...api.requests[0], messages, requests: api.requests };
};

/** Each option, and what shows that it is in force. */
const EFFECTS = {
  async abortController(cwd) {
    const abortController = new AbortController();
    const stream = sdk.query({ prompt: "@@sleep", options: options({ cwd, abortController, allowedTools: ["Bash"] }) });
    await assert.rejects(async () => {
      for await (const message of stream) if (message.type === "assistant") abortController.abort();
    });
  },
  async additionalDirectories(cwd) {
    const other = place("other");
    writeFileSync(`${other}/far.txt`, "far away\n");
    const read = async (more) => result(await once(`@@reads:${other}/far.txt`, { cwd, ...more })).result;
    assert.doesNotMatch(await read({}), /far away/);
    assert.match(await read({ additionalDirectories: [other] }), /far away/);
  },
  async projectConfigRoot(cwd) {
    const git = (...words) => execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], { cwd, stdio: "ignore" });
    git("init", "-q");
    git("commit", "-q", "--allow-empty", "-m", "first");
    git("worktree", "add", "-q", `${cwd}/tree`);
    mkdirSync(`${cwd}/.claude`);
    writeFileSync(`${cwd}/.claude/settings.json`, JSON.stringify(DENY_BASH));
    assert(offersBash(await once("@@hello", { cwd: `${cwd}/tree` })));
    assert(!offersBash(await once("@@hello", { cwd: `${cwd}/tree`, projectConfigRoot: cwd })));
  },
  async agent(cwd) {
    const agents = { polly: { description: "A parrot.", prompt: "You are a parrot." } };
    assert.equal(result(await once("hi", { cwd, agents, agent: "polly" })).result, "Squawk.");
  },
  async agents(cwd) {
    const agents = { helper: { description: "Helps.", prompt: "You help.", tools: ["Bash"] } };
    const messages = await once("@@lead_helper", { cwd, agents, allowedTools: ["Bash"] });
    assert.equal(of(messages, "task_started")[0].subagent_type, "helper");
    assert.equal(of(messages, "task_notification")[0].status, "completed");
  },
  async allowedTools(cwd) {
    await once("@@touch:first", { cwd });
    await once("@@touch:second", { cwd, allowedTools: ["Bash(touch *)"] });
    assert.deepEqual([existsSync(`${cwd}/first`), existsSync(`${cwd}/second`)], [false, true]);
  },
  async canUseTool(cwd) {
    const canUseTool = async (_, input) => ({ behavior: "allow", updatedInput: { ...input, command: "touch other" } });
    const talk = new Conversation({ cwd, canUseTool });
    await talk.say("@@touch:asked");
    await talk.end();
    assert.deepEqual([existsSync(`${cwd}/asked`), existsSync(`${cwd}/other`)], [false, true]);
  },
  async continue(cwd) {
    const { session_id } = result(await once("@@hello", { cwd }));
    assert.equal(result(await once("@@hello", { cwd, continue: true })).session_id, session_id);
  },
  async cwd(cwd) {
    assert.equal(init(await once("@@hello", { cwd })).cwd, cwd);
  },
  async disallowedTools(cwd) {
    assert(!offersBash(await once("@@hello", { cwd, disallowedTools: ["Bash"] })));
  },
  async toolAliases(cwd) {
    const messages = await once("@@touch:aliased", {
      cwd, mcpServers: { desk: desk() }, toolAliases: { Bash: "mcp__desk__run" }, allowedTools: ["mcp__desk__run"],
    });
    assert.match(result(messages).result, /the host got touch aliased/);
    assert(!existsSync(`${cwd}/aliased`));
  },
  async tools(cwd) {
    assert.deepEqual(init(await once("@@hello", { cwd, tools: ["Read"] })).tools, ["Read"]);
    assert.deepEqual(init(await once("@@hello", { cwd, tools: [] })).tools, []);
    assert(offersBash(await once("@@hello", { cwd, tools: { type: "preset", preset: "claude_code" } })));
  },
  async env(cwd) {
    const env = { ...process.env, MARK: "of the host", CLAUDE_AGENT_SDK_CLIENT_APP: "my-app/1.0.0" };
    const messages = await once("@@mark", { cwd, env, allowedTools: ["Bash"] });
    assert.match(result(messages).result, /mark is of the host/);
    const { headers } = await sent(cwd, { env });
    assert.match(headers["user-agent"], /my-app\/1\.0\.0/);
  },
  async executable(cwd) {
    await this.script(cwd, {});
    assert.match(readFileSync(`${cwd}/runtime`, "utf8"), /node/);
  },
  async executableArgs(cwd) {
    await this.script(cwd, { executableArgs: ["--title=of-the-host"] });
    assert.match(readFileSync(`${cwd}/runtime`, "utf8"), /--title=of-the-host/);
  },
  async extraArgs(cwd) {
    const messages = await once("@@hello", { cwd, extraArgs: { "include-partial-messages": null } });
    assert(of(messages, "stream_event").length > 0);
  },
  async fallbackModel(cwd) {
    const api = await Api.start(({ body }) => (body.model === "claude-opus-4-6" ? { status: 404 } : { text: "from another" }));
    const more = { cwd, model: "claude-opus-4-6", fallbackModel: "claude-haiku-4-5", env: api.env() };
    const messages = await once("hello", more);
    api.stop();
    assert.equal(result(messages).result, "from another");
    assert.deepEqual([...new Set(api.requests.map((it) => it.body.model))], ["claude-opus-4-6", "claude-haiku-4-5"]);
  },
  async enableFileCheckpointing(cwd) {
    writeFileSync(`${cwd}/notes.txt`, "first line\n");
    const uuid = "5b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f12";
    for (const enableFileCheckpointing of [false, true]) {
      const talk = new Conversation({ cwd, permissionMode: "acceptEdits", enableFileCheckpointing });
      await talk.say(`@@writes:${cwd}/made.txt`, { uuid });
      if (enableFileCheckpointing) assert.equal((await talk.query.rewindFiles(uuid, { dryRun: true })).canRewind, true);
      else await assert.rejects(talk.query.rewindFiles(uuid));
      await talk.end();
    }
  },
  async toolConfig(cwd) {
    const choice = async (more) => {
      const { body } = await sent(cwd, { ...more, canUseTool: async () => ({ behavior: "deny", message: "no" }) });
      const { description, input_schema } = body.tools.find((it) => it.name === "AskUserQuestion");
      const { preview } = input_schema.properties.questions.items.properties.options.items.properties;
      return { description, preview };
    };
    assert.equal((await choice({})).preview, undefined);
    const { description, preview } = await choice({ toolConfig: { askUserQuestion: { previewFormat: "html" } } });
    assert.equal(preview.type, "string");
    assert.match(description, /HTML/);
  },
  async forkSession(cwd) {
    const { session_id } = result(await once("@@hello", { cwd }));
    const forked = result(await once("@@hello", { cwd, resume: session_id, forkSession: true })).session_id;
    assert.notEqual(forked, session_id);
    assert.equal((await sdk.getSessionMessages(forked, { dir: cwd })).length, 4);
    assert.equal((await sdk.getSessionMessages(session_id, { dir: cwd })).length, 2);
  },
  async betas(cwd) {
    const { headers } = await sent(cwd, { betas: ["context-1m-2025-08-07"] });
    assert.match(headers["anthropic-beta"], /context-1m-2025-08-07/);
  },
  async hooks(cwd) {
    const answer = { hookEventName: "UserPromptSubmit", additionalContext: "the hook was here" };
    const hooks = { UserPromptSubmit: [{ hooks: [async () => ({ hookSpecificOutput: answer })] }] };
    const { body } = await sent(cwd, { hooks });
    assert.match(JSON.stringify(body.messages), /the hook was here/);
  },
  async onElicitation(cwd) {
    const asked = [];
    const onElicitation = async (request) => {
      asked.push(request);
      return { action: "accept", content: { name: "Ada" } };
    };
    const talk = new Conversation({ cwd, mcpServers: { everything }, allowedTools: ["mcp__everything"], onElicitation });
    const messages = await talk.say("@@elicits_name");
    await talk.end();
    assert.equal(asked[0]?.serverName, "everything");
    assert.match(result(messages).result, /Ada/);
  },
  async onUserDialog(cwd) {
    // No dialog is made here: the function is never called, and nothing waits for it.
    const onUserDialog = async () => assert.fail("there is no dialog");
    assert.match(result(await once("@@hello", { cwd, onUserDialog, supportedDialogKinds: ["any"] })).result, /Hello/);
  },
  async supportedDialogKinds(cwd) {
    assert.match((await failure("@@hello", { cwd, supportedDialogKinds: ["any"] })).error, /onUserDialog/);
  },
  async perTaskStopAffordance(cwd) {
    for (const perTaskStopAffordance of [false, true]) {
      const talk = new Conversation({ cwd, perTaskStopAffordance, allowedTools: ["Bash"] });
      await talk.say("@@behind_asleep");
      talk.submit("@@sleep");
      await talk.until((it) => it.type === "assistant" && it.message.content[0]?.name === "Bash" && !it.parent_tool_use_id);
      await talk.query.interrupt();
      await talk.until((it) => it.type === "result");
      const isStopped = (it) => it.subtype === "task_notification" && it.status === "stopped";
      if (!perTaskStopAffordance && !talk.messages.some(isStopped)) await talk.until(isStopped);
      await talk.say("@@hello");
      assert.equal(talk.messages.some(isStopped), !perTaskStopAffordance);
      talk.query.close();
    }
  },
  async persistSession(cwd) {
    await once("@@hello", { cwd, persistSession: false });
    assert.deepEqual(await sdk.listSessions({ dir: cwd }), []);
    await once("@@hello", { cwd, persistSession: true });
    assert.equal((await sdk.listSessions({ dir: cwd })).length, 1);
  },
  async sessionStore(cwd) {
    const sessionStore = new sdk.InMemorySessionStore();
    const { session_id } = result(await once("@@hello", { cwd, sessionStore }));
    const kept = await sdk.getSessionMessages(session_id, { dir: cwd, sessionStore });
    assert.deepEqual(kept.map((it) => it.type), ["user", "assistant"]);
    await sdk.deleteSession(session_id, { dir: cwd });
    assert.equal(result(await once("@@hello", { cwd, sessionStore, resume: session_id })).session_id, session_id);
  },
  async sessionStoreFlush(cwd) {
    const count = async (sessionStoreFlush) => {
      const store = new sdk.InMemorySessionStore();
      let appended = 0;
      const append = store.append.bind(store);
      store.append = (...words) => ((appended += 1), append(...words));
      await once("@@shell", { cwd, sessionStore: store, sessionStoreFlush, allowedTools: ["Bash"] });
      return appended;
    };
    assert((await count("eager")) > (await count("batched")));
  },
  async loadTimeoutMs(cwd) {
    const sessionStore = new sdk.InMemorySessionStore();
    sessionStore.load = () => new Promise(() => {});
    const more = { cwd, sessionStore, loadTimeoutMs: 50, resume: "6b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11" };
    assert.match((await failure("@@hello", more)).error, /tim(ed|e)[ -]?out|50 ?ms/i);
  },
  async includeHookEvents(cwd) {
    const hooks = { Stop: [{ hooks: [async () => ({})] }] };
    const seen = async (includeHookEvents) => of(await once("@@hello", { cwd, hooks, includeHookEvents }), "hook_started").length;
    assert.deepEqual([await seen(false), await seen(true)], [0, 1]);
  },
  async includePartialMessages(cwd) {
    const partial = of(await once("@@hello", { cwd, includePartialMessages: true }), "stream_event");
    assert(partial.some((it) => it.event.type === "content_block_delta"));
    assert.deepEqual(of(await once("@@hello", { cwd }), "stream_event"), []);
  },
  async forwardSubagentText(cwd) {
    const said = async (forwardSubagentText) =>
      of(await once("@@lead", { cwd, forwardSubagentText, allowedTools: ["Bash"] }), "assistant")
        .filter((it) => it.parent_tool_use_id)
        .flatMap((it) => it.message.content)
        .filter((it) => it.type === "text")
        .map((it) => it.text);
    assert.deepEqual([await said(false), await said(true)], [[], ["I helped."]]);
  },
  async verbatimPrompts(cwd) {
    const parrot = { cwd, systemPrompt: "You are a parrot." };
    assert.equal(result(await once("/cost", { ...parrot, verbatimPrompts: true })).result, "Squawk.");
    assert.notEqual(result(await once("/cost", parrot)).result, "Squawk.");
  },
  async thinking(cwd) {
    const thinking = { type: "enabled", budgetTokens: 4000, display: "summarized" };
    assert.deepEqual((await sent(cwd, { thinking })).body.thinking, { type: "enabled", budget_tokens: 4000, display: "summarized" });
    assert.equal((await sent(cwd, { thinking: { type: "disabled" } })).body.thinking?.type ?? "disabled", "disabled");
    assert.equal((await sent(cwd, { thinking: { type: "adaptive" } })).body.thinking.type, "adaptive");
  },
  async effort(cwd) {
    assert.equal((await sent(cwd, { effort: "low" })).body.output_config.effort, "low");
  },
  async maxThinkingTokens(cwd) {
    const { body } = await sent(cwd, { model: "claude-sonnet-4-5", maxThinkingTokens: 3000 });
    assert.equal(body.thinking.budget_tokens, 3000);
  },
  async maxTurns(cwd) {
    const { messages } = await failure("@@shell", { cwd, maxTurns: 1, allowedTools: ["Bash"] });
    assert.equal(result(messages).subtype, "error_max_turns");
  },
  async maxBudgetUsd(cwd) {
    const usage = { input_tokens: 1_000, output_tokens: 100_000 };
    const tool = { type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "true" } };
    const api = await Api.start(() => ({ blocks: [tool], usage }));
    const more = { cwd, model: "claude-opus-4-6", maxBudgetUsd: 1, allowedTools: ["Bash"], env: api.env() };
    const { messages } = await failure("go", more);
    api.stop();
    assert.equal(result(messages).subtype, "error_max_budget_usd");
    assert.equal(api.requests.length, 1);
  },
  async taskBudget(cwd) {
    const { body, headers } = await sent(cwd, { taskBudget: { total: 9000 } });
    assert.deepEqual(body.output_config.task_budget, { type: "tokens", total: 9000 });
    assert.match(headers["anthropic-beta"], /task-budgets-2026-03-13/);
  },
  async mcpServers(cwd) {
    const messages = await once("@@sum", { cwd, mcpServers: { desk: desk() }, allowedTools: ["mcp__desk__add"] });
    assert.equal(result(messages).result, "sum is 3");
  },
  async model(cwd) {
    assert.equal((await sent(cwd, { model: "claude-sonnet-4-5" })).body.model, "claude-sonnet-4-5");
  },
  async outputFormat(cwd) {
    const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
    const messages = await once("@@data", { cwd, outputFormat: { type: "json_schema", schema } });
    assert.deepEqual(result(messages).structured_output, { n: 7 });
  },
  async pathToClaudeCodeExecutable(cwd) {
    assert.match(result(await once("@@hello", { cwd, pathToClaudeCodeExecutable: wrapper(cwd) })).result, /Hello/);
    assert(existsSync(`${cwd}/started`));
  },
  async permissionMode(cwd) {
    const messages = await once(`@@writes:${cwd}/made.txt`, { cwd, permissionMode: "acceptEdits" });
    assert.equal(init(messages).permissionMode, "acceptEdits");
    assert(existsSync(`${cwd}/made.txt`));
  },
  async planModeInstructions(cwd) {
    const { body } = await sent(cwd, { permissionMode: "plan", planModeInstructions: "Plan in verse." });
    assert.match(JSON.stringify(body.messages), /Plan in verse\./);
  },
  async allowDangerouslySkipPermissions(cwd) {
    for (const allowDangerouslySkipPermissions of [false, true]) {
      const talk = new Conversation({ cwd, allowDangerouslySkipPermissions });
      await talk.say("@@hello");
      const asked = talk.query.setPermissionMode("bypassPermissions");
      if (allowDangerouslySkipPermissions) await asked;
      else await assert.rejects(asked);
      await talk.say("@@touch:made");
      await talk.end();
      assert.equal(existsSync(`${cwd}/made`), allowDangerouslySkipPermissions);
    }
  },
  async permissionPromptToolName(cwd) {
    const judged = [];
    const more = { cwd, mcpServers: { desk: desk(judged) }, permissionPromptToolName: "mcp__desk__judge" };
    await once("@@touch:judged", more);
    assert.deepEqual([judged, existsSync(`${cwd}/judged`)], [["Bash"], true]);
  },
  async permissionPrompts(cwd) {
    const canUseTool = async () => assert.fail("nobody is asked");
    const talk = new Conversation({ cwd, canUseTool, permissionPrompts: "none" });
    const messages = await talk.say("@@touch:asked");
    await talk.end();
    assert.equal(result(messages).permission_denials[0].tool_name, "Bash");
    assert(!existsSync(`${cwd}/asked`));
  },
  async plugins(cwd) {
    assert(init(await once("@@hello", { cwd, plugins: plugin(cwd) })).plugins.some((it) => it.name === "kit"));
  },
  async pluginDelivery(cwd) {
    const started = [];
    const spawnClaudeCodeProcess = (given) => (started.push(given.args), spawned(given));
    for (const pluginDelivery of ["argv", "initialize"]) {
      const messages = await once("@@hello", { cwd, plugins: plugin(cwd), pluginDelivery, spawnClaudeCodeProcess });
      assert(init(messages).plugins.some((it) => it.name === "kit"), pluginDelivery);
    }
    assert.deepEqual(started.map((words) => words.join(" ").includes("--plugin-dir")), [true, false]);
  },
  async promptSuggestions(cwd) {
    const env = { ...process.env, CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: "true" };
    const talk = new Conversation({ cwd, env, promptSuggestions: true });
    await talk.say("@@hello");
    await talk.say("@@hello");
    const [suggested] = (await talk.until((it) => it.type === "prompt_suggestion")).slice(-1);
    assert.equal(suggested.suggestion, "run the tests");
    await talk.end();
  },
  async agentProgressSummaries(cwd) {
    // The first summary comes after half a minute: that it does, tests of the program show with a clock of their own.
    for (const agentProgressSummaries of [false, true]) {
      const talk = new Conversation({ cwd, agentProgressSummaries });
      await talk.say("@@hello");
      assert.equal((await talk.query.initializationResult()).agent_progress_summaries, agentProgressSummaries);
      await talk.end();
    }
  },
  async resume(cwd) {
    const { session_id } = result(await once("@@hello", { cwd }));
    assert.equal(result(await once("@@hello", { cwd, resume: session_id })).session_id, session_id);
    assert.equal((await sdk.getSessionMessages(session_id, { dir: cwd })).length, 4);
  },
  async sessionId(cwd) {
    const sessionId = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11";
    assert.equal(result(await once("@@hello", { cwd, sessionId })).session_id, sessionId);
  },
  async resumeSessionAt(cwd) {
    const { session_id } = result(await once("@@hello", { cwd }));
    await once("@@hello", { cwd, resume: session_id });
    const [, first] = await sdk.getSessionMessages(session_id, { dir: cwd });
    await once("@@shell", { cwd, resume: session_id, resumeSessionAt: first.uuid });
    const texts = (await sdk.getSessionMessages(session_id, { dir: cwd })).filter((it) => it.type === "user");
    assert.deepEqual(texts.slice(0, 2).map((it) => it.message.content[0].text ?? it.message.content), ["@@hello", "@@shell"]);
  },
  async resumeDropsTurn(cwd) {
    const { session_id } = result(await once("@@hello", { cwd }));
    for (let turn = 0; turn < 2; turn += 1) await once("@@hello", { cwd, resume: session_id });
    const [, first, second] = await sdk.getSessionMessages(session_id, { dir: cwd });
    const more = { cwd, resume: session_id, resumeSessionAt: first.uuid, resumeDropsTurn: second.uuid };
    const { messages } = await failure("@@hello", more);
    assert.equal(result(messages).subtype, "error_during_execution");
    assert.match(result(messages).errors[0], /^Resume rejected by --resume-drops-turn:/);
  },
  async sandbox(cwd) {
    const other = place("outside");
    const sandbox = { enabled: true, autoAllowBashIfSandboxed: true, filesystem: { denyWrite: [other] } };
    await once(`@@touch:${cwd}/inside`, { cwd, sandbox });
    assert(existsSync(`${cwd}/inside`), "it runs without a question");
    await once(`@@touch:${other}/out`, { cwd, sandbox });
    assert(!existsSync(`${other}/out`));
  },
  async settings(cwd) {
    assert(!offersBash(await once("@@hello", { cwd, settings: DENY_BASH })));
    writeFileSync(`${cwd}/own.json`, JSON.stringify(DENY_BASH));
    assert(!offersBash(await once("@@hello", { cwd, settings: `${cwd}/own.json` })));
    const styled = await once("@@hello", { cwd, settings: { outputStyle: "Explanatory" } });
    assert.equal(init(styled).output_style, "Explanatory");
  },
  async managedSettings(cwd) {
    assert(!offersBash(await once("@@hello", { cwd, managedSettings: DENY_BASH, allowedTools: ["Bash"] })));
  },
  async settingSources(cwd) {
    mkdirSync(`${cwd}/.claude`);
    writeFileSync(`${cwd}/.claude/settings.json`, JSON.stringify(DENY_BASH));
    writeFileSync(`${cwd}/CLAUDE.md`, "Mind the cat.\n");
    assert(!offersBash(await once("@@hello", { cwd, settingSources: ["project"] })));
    assert(offersBash(await once("@@hello", { cwd, settingSources: [] })));
    assert.match(JSON.stringify((await sent(cwd, { settingSources: ["project"] })).body), /Mind the cat/);
    assert.doesNotMatch(JSON.stringify((await sent(cwd, { settingSources: [] })).body), /Mind the cat/);
  },
  async skills(cwd) {
    skill(cwd, "one");
    skill(cwd, "two");
    const use = async (name, skills) => result(await once(`@@skill:${name}`, { cwd, skills })).result;
    assert.match(await use("one", ["one"]), /Do one/);
    assert.doesNotMatch(await use("two", ["one"]), /Do two/);
    assert.match(await use("two", "all"), /Do two/);
  },
  async debug(cwd) {
    const lines = [];
    await once("@@hello", { cwd, debug: true, stderr: (text) => lines.push(text) });
    assert.match(lines.join(""), /DEBUG/);
  },
  async debugFile(cwd) {
    await once("@@hello", { cwd, debugFile: `${cwd}/debug.log` });
    assert.match(readFileSync(`${cwd}/debug.log`, "utf8"), /DEBUG/);
  },
  async stderr(cwd) {
    const lines = [];
    await once("@@hello", { cwd, stderr: (text) => lines.push(text), extraArgs: { ide: null } });
    assert.match(lines.join(""), /--ide has no effect/);
  },
  async strictMcpConfig(cwd) {
    const home = place("home");
    writeFileSync(`${home}/.claude.json`, JSON.stringify({ mcpServers: { everything } }));
    const env = { ...process.env, HOME: home, CLAUDE_CONFIG_DIR: home };
    const names = async (strictMcpConfig) =>
      init(await once("@@hello", { cwd, env, mcpServers: { desk: desk() }, strictMcpConfig })).mcp_servers.map((it) => it.name);
    assert.deepEqual((await names(false)).sort(), ["desk", "everything"]);
    assert.deepEqual(await names(true), ["desk"]);
  },
  async systemPrompt(cwd) {
    const says = async (systemPrompt) => result(await once("hi", { cwd, systemPrompt })).result;
    assert.equal(await says("You are a parrot."), "Squawk.");
    assert.equal(await says(["You are", "two parrots."]), "Squawk squawk.");
    assert.equal(await says({ type: "custom", prompt: "You are a parrot.", snapshot: false }), "Squawk.");
    assert.equal(await says({ type: "preset", preset: "claude_code", append: "Speak like a pirate." }), "Arr.");
    // The prompt says nothing of the user and the place.
    const preset = { type: "preset", preset: "claude_code", excludeDynamicSections: true };
    const { system } = (await sent(cwd, { systemPrompt: preset })).body;
    assert(!JSON.stringify(system).includes(cwd));
    assert.deepEqual((await sent(place("elsewhere"), { systemPrompt: preset })).body.system, system);
  },
  async title(cwd) {
    const { session_id } = result(await once("@@hello", { cwd, title: "A title" }));
    assert.equal((await sdk.getSessionInfo(session_id, { dir: cwd })).customTitle, "A title");
  },
  async spawnClaudeCodeProcess(cwd) {
    const given = [];
    const spawnClaudeCodeProcess = (it) => (given.push(it), spawned(it));
    assert.match(result(await once("@@hello", { cwd, spawnClaudeCodeProcess })).result, /Hello/);
    assert.deepEqual([given.length, given[0].cwd], [1, cwd]);
  },
};

const spawned = ({ command, args, cwd, env, signal }) => spawn(command, args, { cwd, env, signal, stdio: ["pipe", "pipe", "ignore"] });

const HELPERS = {
  /** Has a script of the runtime start the program. */
  async script(cwd, more) {
    const script = `${cwd}/run.mjs`;
    writeFileSync(
      script,
      `import { spawn } from "node:child_process";
       import { writeFileSync } from "node:fs";
       writeFileSync(${JSON.stringify(`${cwd}/runtime`)}, [process.execPath, ...process.execArgv].join(" "));
       const child = spawn(process.env.CENTURION, process.argv.slice(2), { stdio: "inherit" });
       child.on("exit", (code) => process.exit(code ?? 1));`,
    );
    const told = { cwd, pathToClaudeCodeExecutable: script, executable: "node", ...more };
    assert.match(result(await once("@@hello", told)).result, /Hello/);
  },
};

/** The options that the SDK declares. */
function declared() {
  const types = readFileSync(`${process.env.CLIENTS}/@anthropic-ai/claude-agent-sdk/sdk.d.ts`, "utf8");
  const [body] = types.split("export declare type Options = {")[1].split("\n};");
  return [...body.matchAll(/^ {4}(\w+)\??:/gm)].map((it) => it[1]);
}

async function main() {
  const chosen = process.argv.slice(2);
  assert.deepEqual(Object.keys(EFFECTS).sort(), declared().sort(), "each option has a line here");
  const left = Object.entries(EFFECTS).filter(([name]) => chosen.length === 0 || chosen.includes(name));
  const failed = [];
  const work = async () => {
    for (;;) {
      const next = left.shift();
      if (!next) return;
      const [name, effect] = next;
      try {
        await effect.call(HELPERS, place(name));
      } catch (error) {
        failed.push(`${name}: ${String(error?.stack ?? error).slice(0, 1500)}`);
      }
    }
  };
  await Promise.all([work(), work(), work()]);
  if (failed.length > 0) {
    console.error(failed.join("\n\n"));
    process.exit(1);
  }
  process.exit(0);
}

await main();
