// The id in the swarm of a foreign agent: `synadia-<agent>-<owner>-<session>`. The same agent gets the same id after a
// restart of the bridge, so that its success rates stay.

import { createHash } from "node:crypto";
import type { ForeignAgent } from "./messages.ts";

const LENGTH_MAX = 64;

/** A token of a subject. Names that had to change, and a name in `taken`, get a digest of the prompt subject. */
export function agentIdFor(
  {
    agent,
    owner,
    session,
    promptSubject,
  }: Pick<ForeignAgent, "agent" | "owner" | "session" | "promptSubject">,
  taken: ReadonlySet<string>,
): string {
  const name = `synadia-${agent}-${owner}-${session}`;
  const token = name.replace(/[^A-Za-z0-9_-]/g, "_");
  if (token === name && token.length <= LENGTH_MAX && !taken.has(token)) return token;
  const digest = createHash("sha256").update(promptSubject).digest("hex").slice(0, 8);
  return `${token.slice(0, LENGTH_MAX - digest.length - 1)}-${digest}`;
}
