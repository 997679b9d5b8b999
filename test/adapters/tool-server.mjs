// An MCP server for tests, with tools that behave well and badly. Arguments: a file that notes what happened, and
// `stubborn` for a server that goes on after its input was closed.

import { appendFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const note = (what) => appendFileSync(process.argv[2], `${what}\n`);
note("started");

const text = (words) => ({ content: [{ type: "text", text: words }] });
if (process.argv[3] === "stubborn") setInterval(() => undefined, 1_000);

serveStdio(() => {
  const server = new McpServer({ name: "tools", version: "1" });
  const words = z.object({ words: z.string() });
  server.registerTool("shout", { inputSchema: words }, ({ words: of }) => {
    process.stderr.write(`shouting ${of}\n`);
    return text(of.toUpperCase());
  });
  server.registerTool(
    "count",
    { inputSchema: words, outputSchema: z.object({ count: z.int() }) },
    ({ words: of }) => ({ ...text("see the count"), structuredContent: { count: of.split(" ").length } }),
  );
  server.registerTool("picture", {}, () => ({
    content: [{ type: "image", data: "/wA=", mimeType: "image/png" }],
  }));
  server.registerTool("two", {}, () => ({ content: [...text("one").content, ...text("two").content] }));
  server.registerTool("fail", {}, () => ({ ...text("the disk is full"), isError: true }));
  server.registerTool("die", {}, () => {
    note("dying");
    process.stderr.write("out of memory\n");
    process.exit(3);
  });
  server.registerTool("hang", {}, async ({ mcpReq }) => {
    note("hanging");
    await new Promise((resolve) => mcpReq.signal.addEventListener("abort", resolve));
    note("cancelled");
    return text("too late");
  });
  return server;
});
