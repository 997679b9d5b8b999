// An MCP server that breaks the protocol: it writes other lines between its messages, answers twice, answers what was
// not asked, and never answers a call for silence.

import { createInterface } from "node:readline";

const write = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  process.stdout.write('listening on port 80\n{"jsonrpc":"2.0","id":\n[]\n{}\n');
  if (method === "initialize")
    write({
      id,
      result: {
        protocolVersion: "2024-11-05",
        capabilities: { tools: {} },
        serverInfo: { name: "r", version: "0" },
      },
    });
  else if (method === "tools/list")
    write({ id, result: { tools: ["echo", "silence", "flood", "nonsense"].map(toolOf) } });
  else if (method === "tools/call") answer(id, params);
  else write({ id, error: { code: -32601, message: "Method not found" } });
});

function toolOf(name) {
  return { name, inputSchema: { type: "object" } };
}

function answer(id, { name, arguments: given }) {
  if (name === "silence") return;
  if (name === "flood") {
    process.stdout.write("x".repeat(11 * 1024 ** 2));
    return;
  }
  if (name === "nonsense") {
    write({ id, result: { content: "no list" } });
    return;
  }
  const result = { content: [{ type: "text", text: JSON.stringify(given) }] };
  write({ id: 12_345, result });
  write({ id, result });
  write({ id, result: { content: [{ type: "text", text: "another answer" }] } });
  write({ id, error: { code: -32603, message: "and an error" } });
}
