// `waggle up` of a compiled checkout as a child process. Not here: the server, which the caller starts before.

import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Children } from "./children.ts";

const READY_MS = 60_000;

export interface CoordinatorOptions {
  readonly upArguments: readonly string[];
  /** Root of a built checkout. Default: the present checkout. */
  readonly checkout?: string;
  readonly cwd?: string;
  /** In addition to the present environment. */
  readonly env?: NodeJS.ProcessEnv;
  /** Options of Node. */
  readonly execArgv?: readonly string[];
  /** Called for each record of the log. */
  readonly onLog?: (record: LogRecord) => void;
}

/** A line of the log, as far as benchmarks read it. */
export interface LogRecord {
  readonly msg?: string;
  readonly tookMs?: number;
}

/** Resolves when the coordinator leads or stands by. @throws Error with the last line of the log */
export async function startCoordinator(
  children: Children,
  { upArguments, checkout = presentCheckout, env = {}, execArgv = [], onLog, ...rest }: CoordinatorOptions,
): Promise<ChildProcess> {
  let last = "nothing was logged";
  let hasRole: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => {
    hasRole = resolve;
  });
  const launcher = join(checkout, "bin", "waggle.js");
  const child = children.start(
    process.execPath,
    [...execArgv, launcher, "up", "--no-dashboard", ...upArguments],
    {
      ...rest,
      env: { ...process.env, ...env },
      onLine: (line) => {
        const record = recordOf(line);
        last = record.msg ?? line;
        onLog?.(record);
        if (last === "leading" || last.startsWith("standing by")) hasRole();
      },
    },
  );
  let timer: NodeJS.Timeout | undefined;
  const failed = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the coordinator does not lead: ${last}`)), READY_MS);
    child.once("exit", () => reject(new Error(`the coordinator ended (npm run build?): ${last}`)));
  });
  failed.catch(() => undefined);
  try {
    await Promise.race([ready, failed]);
    return child;
  } finally {
    clearTimeout(timer);
  }
}

const presentCheckout = fileURLToPath(new URL("../..", import.meta.url));

/** @returns an empty record for a line of another program */
export function recordOf(line: string): LogRecord {
  try {
    return Object(JSON.parse(line)) as LogRecord;
  } catch {
    return {};
  }
}
