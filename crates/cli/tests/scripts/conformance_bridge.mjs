// Puts `centurion mcp serve` behind HTTP, for the conformance suite, which reaches servers by URL alone: a session is a
// process, and messages pass as they are. Prints the URL.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

/** A process of the server. Each request waits for the answer with its id; what comes before goes along with it. */
class Session {
  id = randomUUID();
  waiting = new Map();

  constructor() {
    this.child = spawn(process.env.CENTURION, ["mcp", "serve"], { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: this.child.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      const isAnswer = message.id !== undefined && message.method === undefined;
      const open = isAnswer ? this.waiting.get(message.id) : this.waiting.values().next().value;
      open?.(message, isAnswer);
      if (isAnswer) this.waiting.delete(message.id);
    });
  }

  send(message) {
    this.child.stdin.write(`${JSON.stringify(message)}\n`);
  }
}

const sessions = new Map();

/** The session of a request: a new one for a handshake, and one for each request that needs none. */
function session(request, message) {
  const known = sessions.get(request.headers["mcp-session-id"]);
  if (known) return known;
  const meta = message.params?._meta ?? {};
  if (message.method !== "initialize" && !meta["io.modelcontextprotocol/protocolVersion"]) return undefined;
  const made = new Session();
  if (message.method === "initialize") sessions.set(made.id, made);
  else made.isForOne = true;
  return made;
}

async function post(request, response) {
  let text = "";
  for await (const part of request) text += part;
  const message = JSON.parse(text);
  const to = session(request, message);
  if (!to) return response.writeHead(request.headers["mcp-session-id"] ? 404 : 400).end();
  if (message.id === undefined || message.method === undefined) {
    to.send(message);
    return response.writeHead(202).end();
  }
  const headers = { "content-type": "text/event-stream" };
  if (!to.isForOne) headers["mcp-session-id"] = to.id;
  response.writeHead(200, headers);
  to.waiting.set(message.id, (told, isLast) => {
    response.write(`event: message\ndata: ${JSON.stringify(told)}\n\n`);
    if (!isLast) return;
    response.end();
    if (to.isForOne) to.child.stdin.end();
  });
  to.send(message);
}

const server = createServer((request, response) => {
  if (request.method === "POST") return void post(request, response).catch((error) => response.writeHead(400).end(String(error)));
  const known = sessions.get(request.headers["mcp-session-id"]);
  if (request.method !== "DELETE") return void response.writeHead(405).end();
  if (!known) return void response.writeHead(404).end();
  known.child.stdin.end();
  sessions.delete(known.id);
  response.writeHead(200).end();
});

server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
