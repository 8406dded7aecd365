// A host that makes every hook event happen that can happen here, by the SDK for TypeScript.

import { mkdirSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { Conversation, assert, result, run, sdk } from "./sdk_kit.mjs";

// The SDK has no method for one, and the other needs a flag of the start: they have tests of their own.
const ELSEWHERE = ["DirectoryAdded", "Setup"];

async function everyEvent() {
  writeFileSync("CLAUDE.md", "Be brief.\n");
  mkdirSync(".claude/skills/greet", { recursive: true });
  writeFileSync(".claude/skills/greet/SKILL.md", "---\ndescription: Greets.\n---\n@@hello\n");
  const elsewhere = resolve("..", "elsewhere");
  mkdirSync(elsewhere);

  const heard = [];
  const answers = {
    SessionStart: { watchPaths: ["made.txt"] },
    WorktreeCreate: { worktreePath: elsewhere },
    Elicitation: { action: "accept", content: { name: "Ada" } },
  };
  const note = async (input) => {
    heard.push(input);
    const answer = answers[input.hook_event_name];
    return answer ? { hookSpecificOutput: { hookEventName: input.hook_event_name, ...answer } } : {};
  };
  const hooks = Object.fromEntries(sdk.HOOK_EVENTS.map((event) => [event, [{ hooks: [note] }]]));
  const talk = new Conversation({
    hooks,
    settings: { subagents: { teams: true }, env: { CLAUDE_CODE_ENABLE_TASKS: "1" } },
    mcpServers: { everything: JSON.parse(process.env.EVERYTHING) },
    allowedTools: ["mcp__everything", "Agent"],
    canUseTool: async (_, input) =>
      input.command?.includes("denied")
        ? { behavior: "deny", message: "not that" }
        : { behavior: "allow", updatedInput: input },
    onElicitation: async () => ({ action: "decline" }),
  });
  const { query } = talk;

  await talk.say("@@write");
  await talk.say("@@moves");
  await talk.say("/greet");
  await talk.say("@@fails");
  writeFileSync(".claude/settings.local.json", JSON.stringify({ permissions: { deny: ["WebFetch"] } }));
  await talk.say("@@work");
  await talk.say("@@elicits");
  await talk.say("@@apart");
  await talk.say("@@members");
  await talk.until((it) => it.type === "result" && heard.some((it) => it.hook_event_name === "TeammateIdle"));
  await query.setModel("haiku");
  await query.setModel();
  await query.setPermissionMode("auto");
  await talk.say("@@touch:denied.txt");
  await query.setPermissionMode("default");
  await talk.say("/compact");
  await talk.say("@@breaks");
  await talk.say("/clear");
  assert.equal(result(talk.messages).is_error, false);
  const events = new Set(heard.map((it) => it.hook_event_name));
  const missing = sdk.HOOK_EVENTS.filter((event) => !events.has(event) && !ELSEWHERE.includes(event));
  assert.deepEqual(missing, []);
  for (const it of heard) {
    assert(it.session_id && it.transcript_path && it.cwd, JSON.stringify(it));
  }
  await talk.end();
}

await run(everyEvent);
