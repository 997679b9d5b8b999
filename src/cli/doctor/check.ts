// One check of `waggle doctor`.

import type { ExitCode } from "../exit-code.ts";

export interface Check {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail";
  readonly found: string;
  /** Remedy; only if the check is not ok. */
  readonly advice?: string;
  /** Exit code of doctor for this check; only if the check failed. Default 1. */
  readonly exitCode?: ExitCode;
}
