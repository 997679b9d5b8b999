// Loads the MCP client, an optional package: only agents with --mcp need it.

import { MissingPackageError } from "../../errors.ts";

/** @throws MissingPackageError */
export async function loadMcpClient(): Promise<typeof import("./tool-agent.ts")> {
  try {
    return await import("./tool-agent.ts");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new MissingPackageError(
      "MCP servers need the package @modelcontextprotocol/client, which is not installed: run " +
        "`npm install @modelcontextprotocol/client` beside waggledance (with -g for a global installation)",
      { field: "--mcp", cause },
    );
  }
}
