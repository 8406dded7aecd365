// What hosts of the tests share that are written with the SDK for TypeScript.

import assert from "node:assert/strict";

const clients = process.env.CLIENTS;
export const sdk = await import(`${clients}/@anthropic-ai/claude-agent-sdk/sdk.mjs`);
export const { z } = await import(`${clients}/zod/index.js`);
export { assert };

/** Options of every session of the tests. */
export function options(more = {}) {
  return {
    pathToClaudeCodeExecutable: process.env.CENTURION,
    model: process.env.MODEL,
    stderr: () => {},
    ...more,
  };
}

export function user(text, more = {}) {
  return {
    type: "user",
    message: { role: "user", content: text },
    parent_tool_use_id: null,
    session_id: "",
    ...more,
  };
}

/** A conversation: what is said goes in one by one, what comes back is read up to a result. */
export class Conversation {
  #wake = () => {};
  #said = [];
  #isOver = false;

  constructor(more) {
    this.messages = [];
    this.query = sdk.query({ prompt: this.#prompts(), options: options(more) });
    this.#reader = this.query[Symbol.asyncIterator]();
  }

  #reader;

  async *#prompts() {
    while (!this.#isOver) {
      while (this.#said.length > 0) yield this.#said.shift();
      await new Promise((wake) => (this.#wake = wake));
    }
  }

  submit(text, more) {
    this.#said.push(user(text, more));
    this.#wake();
  }

  /** Reads up to a message that fits, and gives all messages back. */
  async until(fits) {
    const messages = [];
    for (;;) {
      const { value, done } = await this.#reader.next();
      assert(!done, `the program ended early: ${JSON.stringify(messages).slice(0, 2000)}`);
      messages.push(value);
      this.messages.push(value);
      if (fits(value)) return messages;
    }
  }

  async say(text, more) {
    this.submit(text, more);
    return this.until((message) => message.type === "result");
  }

  async end() {
    this.#isOver = true;
    this.#wake();
    while (!(await this.#reader.next()).done);
  }
}

export const of = (messages, kind) =>
  messages.filter((message) => message.type === kind || message.subtype === kind);

export const result = (messages) => messages.findLast((message) => message.type === "result");

/** Runs the parts of a test; a failure is told in a few lines. */
export async function run(...parts) {
  for (const part of parts) {
    try {
      await part();
    } catch (error) {
      console.error(`${part.name}: ${String(error?.stack ?? error).slice(0, 4000)}`);
      process.exit(1);
    }
  }
  process.exit(0);
}
