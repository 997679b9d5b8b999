// One finding of `waggle doctor`.

import type { ExitCode } from "../exit-code.ts";

export interface Check {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail";
  readonly found: string;
  /** What to do; only where it is not ok. */
  readonly advice?: string;
  /** What doctor is to end with for it; only where it failed. Default 1. */
  readonly exitCode?: ExitCode;
}
