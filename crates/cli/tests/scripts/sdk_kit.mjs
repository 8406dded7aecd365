// What hosts of the tests share that are written with the SDK for TypeScript.

import assert from "node:assert/strict";
import { createServer } from "node:http";

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

export async function all(stream) {
  const messages = [];
  for await (const message of stream) messages.push(message);
  return messages;
}

/** The events of an answer. */
function* events({ text, blocks = [{ type: "text", text }], usage = { input_tokens: 9, output_tokens: 3 } }) {
  const message = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], stop_reason: null, usage };
  yield { type: "message_start", message };
  for (const [index, block] of blocks.entries()) {
    const isText = block.type === "text";
    yield { type: "content_block_start", index, content_block: isText ? { ...block, text: "" } : { ...block, input: {} } };
    const delta = isText
      ? { type: "text_delta", text: block.text }
      : { type: "input_json_delta", partial_json: JSON.stringify(block.input) };
    yield { type: "content_block_delta", index, delta };
    yield { type: "content_block_stop", index };
  }
  const stop_reason = blocks.some((it) => it.type === "tool_use") ? "tool_use" : "end_turn";
  yield { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage };
  yield { type: "message_stop" };
}

/** A Messages API on this machine that keeps what it is sent: `answer` says what comes back. */
export class Api {
  static async start(answer = () => ({ text: "Hello there." })) {
    const api = new Api();
    api.requests = [];
    api.server = createServer(async (request, response) => {
      let text = "";
      for await (const part of request) text += part;
      if (!request.url.startsWith("/v1/messages")) return response.writeHead(404).end("{}");
      const seen = { headers: request.headers, body: JSON.parse(text) };
      api.requests.push(seen);
      const { status = 200, ...told } = answer(seen);
      if (status !== 200) {
        const error = { type: "error", error: { type: "not_found_error", message: "there is no such model" } };
        return response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(error));
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of events(told)) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
      response.end();
    });
    await new Promise((listening) => api.server.listen(0, "127.0.0.1", listening));
    return api;
  }

  env(env = process.env) {
    return { ...env, ANTHROPIC_BASE_URL: `http://127.0.0.1:${this.server.address().port}`, ANTHROPIC_API_KEY: "test" };
  }

  stop() {
    this.server.close();
  }
}

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
