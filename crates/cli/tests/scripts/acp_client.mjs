// An editor of the tests: drives an adapter by the Agent Client Protocol.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";

const acp = await import(`${process.env.CLIENTS}/@agentclientprotocol/sdk/dist/v1/unstable/acp.js`);
const [adapter] = process.argv.slice(2);
const { agent } = acp.methods;
const cwd = process.cwd();

/** Starts the adapter, has `act` use it, and ends it. */
async function edit(act) {
  const child = spawn(process.execPath, [adapter], { stdio: ["pipe", "pipe", "ignore"] });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const editor = { updates: [], asked: [], answer: "allow_once", seen: () => {} };
  const app = acp
    .client({ name: "editor" })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      editor.updates.push(params.update);
      editor.seen(params.update);
    })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      editor.asked.push(params);
      const option = params.options.find((it) => it.kind === editor.answer);
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    });
  try {
    await app.connectWith(stream, async (connection) => {
      editor.connection = connection;
      await connection.request(agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
      await act(editor);
    });
  } finally {
    child.kill();
  }
}

/** Says something; gives the updates until the end of the turn. */
async function say(editor, sessionId, text) {
  const at = editor.updates.length;
  const prompt = [{ type: "text", text }];
  const { stopReason } = await editor.connection.request(agent.session.prompt, { sessionId, prompt });
  return { stopReason, updates: editor.updates.slice(at) };
}

const words = (updates) =>
  updates
    .filter((it) => it.sessionUpdate === "agent_message_chunk")
    .map((it) => it.content.text)
    .join("");

const kinds = (updates) => new Set(updates.map((it) => it.sessionUpdate));

let session;

async function works(editor) {
  session = await editor.connection.request(agent.session.new, { cwd, mcpServers: [] });
  const { sessionId } = session;
  assert(session.modes.availableModes.some((it) => it.id === "acceptEdits"), JSON.stringify(session));
  let turn = await say(editor, sessionId, "@@hello");
  assert.equal(turn.stopReason, "end_turn");
  assert.match(words(turn.updates), /Hello there\./);

  turn = await say(editor, sessionId, "@@touch:allowed.txt");
  assert.equal(editor.asked.length, 1);
  assert.deepEqual(editor.asked[0].toolCall.rawInput.command, "touch allowed.txt");
  assert(existsSync("allowed.txt"));
  editor.answer = "reject_once";
  turn = await say(editor, sessionId, "@@touch:rejected.txt");
  assert.equal(turn.stopReason, "end_turn");
  assert(!existsSync("rejected.txt"));
  const rejected = turn.updates.filter((it) => it.sessionUpdate === "tool_call_update");
  assert(rejected.some((it) => it.status === "failed"), JSON.stringify(rejected));
  editor.answer = "allow_once";

  turn = await say(editor, sessionId, "@@change");
  assert.equal(readFileSync("notes.txt", "utf8"), "second line\n");
  const diffs = turn.updates.flatMap((it) => it.content ?? []).filter((it) => it.type === "diff");
  assert(diffs.some((it) => it.newText.includes("second")), JSON.stringify(turn.updates));
  turn = await say(editor, sessionId, "@@todo");
  const plan = turn.updates.find((it) => it.sessionUpdate === "plan");
  assert.deepEqual(plan.entries.map((it) => [it.content, it.status]), [["one", "in_progress"]]);
  turn = await say(editor, sessionId, "@@lead");
  assert.match(words(turn.updates), /all done/);
  assert(kinds(turn.updates).has("tool_call"));

  await editor.connection.request(agent.session.setMode, { sessionId, modeId: "acceptEdits" });
  const before = editor.asked.length;
  await say(editor, sessionId, "@@change_more");
  assert.equal(readFileSync("notes.txt", "utf8"), "third line\n");
  assert.equal(editor.asked.length, before, "edits are accepted");

  // A turn that is under way is cancelled, and the next one works.
  const begun = new Promise((seen) => {
    editor.seen = (update) => update.sessionUpdate === "tool_call" && seen();
  });
  const sleeping = say(editor, sessionId, "@@sleep");
  await begun;
  await editor.connection.notify(agent.session.cancel, { sessionId });
  assert.equal((await sleeping).stopReason, "cancelled");
  editor.seen = () => {};
  assert.match(words((await say(editor, sessionId, "@@hello")).updates), /Hello there\./);
}

async function goesOn(editor) {
  const { sessionId } = session;
  const { sessions } = await editor.connection.request(agent.session.list, { cwd });
  assert(sessions.some((it) => it.sessionId === sessionId), JSON.stringify(sessions));
  const at = editor.updates.length;
  await editor.connection.request(agent.session.load, { sessionId, cwd, mcpServers: [] });
  const loaded = editor.updates.slice(at);
  for (const kind of ["user_message_chunk", "agent_message_chunk", "tool_call"]) {
    assert(kinds(loaded).has(kind), `${kind} of ${[...kinds(loaded)]}`);
  }
  assert.match(words(loaded), /Hello there\./);
  assert.match(words((await say(editor, sessionId, "@@hello")).updates), /Hello there\./);
}

async function resumes(editor) {
  const { sessionId } = session;
  await editor.connection.request(agent.session.resume, { sessionId, cwd, mcpServers: [] });
  assert.match(words((await say(editor, sessionId, "@@hello")).updates), /Hello there\./);
}

async function forks(editor) {
  const given = { sessionId: session.sessionId, cwd, mcpServers: [] };
  const fork = await editor.connection.request(agent.session.fork, given);
  assert.notEqual(fork.sessionId, session.sessionId);
  assert.match(words((await say(editor, fork.sessionId, "@@hello")).updates), /Hello there\./);
}

for (const part of [works, goesOn, resumes, forks]) {
  try {
    await edit(part);
  } catch (error) {
    console.error(`${part.name}: ${String(error?.stack ?? error).slice(0, 4000)} ${JSON.stringify(error?.data)}`);
    process.exit(1);
  }
}
process.exit(0);
