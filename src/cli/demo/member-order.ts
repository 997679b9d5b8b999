// What the demo tells each of its processes to be, and what they answer: over the channel between parent and
// child, so that nothing of it (a server's password, say) stands on a command line.

import type { LogLevel } from "../../config/schema.ts";
import type { Settings } from "../../config/settings.ts";
import type { DemoAgent } from "./scenario.ts";

export type MemberOrder = {
  readonly settings: Settings;
  readonly logLevel: LogLevel;
} & (
  | { readonly role: "coordinator" }
  | {
      readonly role: "agent";
      readonly agent: DemoAgent;
      /** How long an attempt takes on average, ms. */
      readonly paceMs: number;
      /** Where the files are; absolute. */
      readonly folder: string;
    }
);

export type MemberNotice =
  /** It leads, or it has joined. `journal` of a coordinator: what its durability is worth. */
  | { readonly type: "ready"; readonly journal?: { readonly durability: string; readonly sentence: string } }
  | { readonly type: "failed"; readonly code: string; readonly message: string };
