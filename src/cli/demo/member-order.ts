// Messages between the demo and its processes, over the channel between parent and child. A server's password, for
// example, never appears on a command line.

import type { LogLevel } from "../../config/schema.ts";
import type { Settings } from "../../config/settings.ts";
import type { DemoAgent } from "./scenario.ts";

/** The first message. */
export type MemberOrder = {
  readonly settings: Settings;
  readonly logLevel: LogLevel;
} & (
  | { readonly role: "coordinator" }
  | {
      readonly role: "agent";
      readonly agent: DemoAgent;
      /** How long an attempt takes on average, ms. */
      readonly attemptMs: number;
      /** Where the files are; absolute. */
      readonly folder: string;
    }
);

/** Later messages, to an agent. */
export interface ConditionOrder {
  readonly type: "condition";
  /** A broken agent fails every attempt at once. */
  readonly isBroken: boolean;
}

export type MemberNotice =
  /** The coordinator leads, or the agent has joined. */
  | { readonly type: "ready" }
  | { readonly type: "failed"; readonly code: string; readonly message: string }
  /** From `at` on, new attempts run under the new condition. */
  | { readonly type: "condition"; readonly isBroken: boolean; readonly at: number };
