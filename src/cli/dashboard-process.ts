// The dashboard of `waggle up`: the verb `dashboard` as a process of its own, so that no viewer takes time from the
// leader. It ends with `up`, also when `up` is killed: its input ends then. The coordinator goes on without it.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { labelled } from "./format.ts";
import type { VerbContext } from "./verb.ts";

/** Environment variable: the verb runs as a part of `up`. */
export const FROM_UP = "WAGGLE_DASHBOARD_OF_UP";

/** Flags of `up` that also say which swarm the dashboard shows. */
const sharedFlags = {
  nats: "--nats",
  natsContext: "--nats-context",
  creds: "--creds",
  nkey: "--nkey",
  tlsCa: "--tls-ca",
  tlsCert: "--tls-cert",
  tlsKey: "--tls-key",
  inboxPrefix: "--inbox-prefix",
  swarm: "--swarm",
  dataFolder: "--data-folder",
  config: "--config",
  operatorConfig: "--operator-config",
} as const;

/** Prints the URL as soon as there is one. Returns a function that ends the process. */
export function startDashboardProcess({ flags, settings, shell, output, logger }: VerbContext): () => void {
  const shared = Object.entries(sharedFlags).flatMap(([name, flag]) => {
    const value = flags[name as keyof typeof sharedFlags];
    return typeof value === "string" ? [flag, value] : [];
  });
  const child = spawn(
    process.execPath,
    [
      ...process.execArgv,
      shell.script,
      "dashboard",
      "--json",
      ...shared,
      ...(settings.insecure ? ["--insecure"] : []),
    ],
    {
      cwd: shell.cwd,
      env: { ...shell.env, [FROM_UP]: "1" },
      stdio: ["pipe", "pipe", "pipe"],
      detached: true, // Ctrl-C reaches `up`, which ends it
    },
  );
  let isStopped = false;
  let lastError = "";
  createInterface({ input: child.stdout }).on("line", (line) => {
    const url = urlIn(line);
    if (url === undefined) return;
    output.datum({ type: "dashboard", url }, () => labelled("dashboard", url, undefined));
  });
  createInterface({ input: child.stderr }).on("line", (line) => {
    lastError = messageIn(line) ?? lastError;
  });
  child.stdin.on("error", () => undefined); // it has ended: reported below
  child.on("error", (error) => {
    lastError = error.message;
  });
  child.on("close", (code) => {
    if (isStopped) return;
    const why = lastError === "" ? `exit code ${code}` : lastError;
    logger.warn(
      `the dashboard has ended (${why}); the coordinator goes on. \`waggle dashboard\` starts another`,
    );
  });
  child.unref();
  return () => {
    isStopped = true;
    child.kill("SIGTERM");
    child.stdin.destroy();
  };
}

function urlIn(line: string): string | undefined {
  const { type, url } = recordIn(line) ?? {};
  return type === "dashboard" && typeof url === "string" ? url : undefined;
}

function messageIn(line: string): string | undefined {
  const { message, msg, error } = recordIn(line) ?? {};
  const nested =
    typeof error === "object" && error !== null && "message" in error ? error.message : undefined;
  return [nested, message, msg].find((text) => typeof text === "string") as string | undefined;
}

function recordIn(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const parsed: unknown = JSON.parse(line);
    return typeof parsed === "object" && parsed !== null ? (parsed as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // a line for people
  }
}
