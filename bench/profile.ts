// `npm run bench:profile`: where the microseconds of a task go. CPU profiles of the coordinator, one agent process with
// its threads, and the client, within the measured window; and a budget by role and part.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Budget, budgetTable, type ProfiledRole, partsOf } from "./harness/budget.ts";
import { Children, stopAtSignals } from "./harness/children.ts";
import {
  type CpuProfile,
  type ProfileSummary,
  type Row,
  summaryOf,
  type Window,
} from "./harness/cpu-profile.ts";
import { between, spent } from "./harness/machine.ts";
import { storedBudgets, writeBudgets } from "./harness/page.ts";
import { codeNameOf, newestNatsServer, preparePeers } from "./harness/prepare.ts";
import { type ProfileFlags, profileUsage, readProfileFlags } from "./harness/profile-flags.ts";
import { flagsOrExitCode } from "./harness/refusing.ts";
import { perTask } from "./harness/rounds.ts";
import { Systems, systemKinds } from "./harness/systems.ts";
import { asText } from "./harness/tables.ts";

const SAMPLE_US = 200;
/** A young system takes more CPU time per task. */
const WARM_MS = 15_000;
/** A thread that did less has nothing to tell. */
const BUSY_US_MIN = 50_000;
const root = fileURLToPath(new URL("..", import.meta.url));
const profiledRoles: readonly ProfiledRole[] = ["coordinator", "workers", "client"];

const read = flagsOrExitCode(readProfileFlags(process.argv.slice(2)), profileUsage);
if (typeof read === "number") process.exitCode = read;
else process.exitCode = await main(read);

/** @returns the exit code */
async function main(flags: ProfileFlags): Promise<number> {
  if (flags.before !== undefined && !existsSync(join(flags.before, "dist", "src", "index.js"))) {
    console.error(`--before: ${flags.before} has no dist; run npm run build there`);
    return 2;
  }
  preparePeers(root, { withPackages: false });
  const children = new Children((sentence) => console.error(`! ${sentence}`));
  const folder = mkdtempSync(join(tmpdir(), "waggle-profile-"));
  stopAtSignals(children, folder);
  try {
    const profiled = async (name: string, checkout: string) => {
      mkdirSync(join(folder, name));
      return await profile(flags, { children, folder: join(folder, name), checkout });
    };
    const before = flags.before === undefined ? undefined : await profiled("before", resolve(flags.before));
    const now = await profiled("now", root);
    print(now, flags.lines);
    const earlier = before?.budget ?? (flags.report ? storedBudgets(root)?.before : undefined);
    const budgets = { ...(earlier === undefined ? {} : { before: earlier }), now: now.budget };
    if (before !== undefined || flags.report) console.log(asText(budgetTable(budgets)));
    if (flags.report) console.error(`written: ${writeBudgets(budgets, root).join(", ")}`);
    return 0;
  } finally {
    await children.stopAll();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Profiled {
  readonly budget: Budget;
  readonly tasks: number;
  /** Cores used by other programs. */
  readonly foreign: number;
  /** The busy threads. */
  readonly threads: readonly {
    readonly role: ProfiledRole;
    readonly name: string;
    readonly summary: ProfileSummary;
    /** Tasks that the thread had a part in. */
    readonly tasks: number;
  }[];
}

interface ProfileContext {
  readonly children: Children;
  readonly folder: string;
  readonly checkout: string;
}

async function profile(
  { order, what, agents, keep }: ProfileFlags,
  { children, folder, checkout }: ProfileContext,
): Promise<Profiled> {
  const systems = new Systems({ children, folder, natsServer: newestNatsServer(), checkout });
  try {
    const options = (role: ProfiledRole) => [
      "--cpu-prof",
      `--cpu-prof-interval=${SAMPLE_US}`,
      `--cpu-prof-dir=${join(folder, role)}`,
    ];
    const preload = new URL("./harness/profile-threads.mjs", import.meta.url).href;
    const system = await systems.start(systemKinds.waggle, "waggle", {
      settings: { agents: agents / 2, maxConcurrent: Math.ceil(1024 / agents) },
      nodeOptions: {
        coordinator: options("coordinator"),
        worker: [...options("workers"), "--import", preload],
        client: options("client"),
      },
    });
    const concurrency = order.op === "closed" ? order.concurrency : 1024;
    await system.ask({ op: "closed", concurrency, ms: WARM_MS });
    const before = spent(system.pids);
    const fromUs = monotonicUs();
    const { tasks, ratePerSecond } = await system.ask(order);
    const window = { fromUs, toUs: monotonicUs() };
    const { usByRole, foreign } = between(before, spent(system.pids));
    await system.stop();
    const threads = profiledRoles.flatMap((role) =>
      summariesOf(join(folder, role), window, checkout)
        .filter(({ summary }) => summary.busyUs >= BUSY_US_MIN)
        // One of two agent processes is profiled, with half of the tasks.
        .map((thread) => ({ ...thread, role, tasks: role === "workers" ? tasks / 2 : tasks })),
    );
    if (keep !== undefined) for (const role of profiledRoles) keepProfiles(join(folder, role), keep, role);
    const parts = (role: ProfiledRole) => {
      const own = threads.filter((thread) => thread.role === role);
      return partsOf(
        own.map(({ summary }) => summary),
        own[0]?.tasks ?? tasks,
      );
    };
    const budget = {
      ...codeNameOf(checkout),
      node: process.version,
      what,
      ratePerSecond,
      usByRole: perTask(usByRole, tasks),
      parts: { coordinator: parts("coordinator"), workers: parts("workers"), client: parts("client") },
    };
    return { budget, tasks, foreign, threads };
  } finally {
    await systems.stopServers();
  }
}

function summariesOf(folder: string, window: Window, checkout: string) {
  return readdirSync(folder)
    .sort()
    .map((file, at) => {
      const found = JSON.parse(readFileSync(join(folder, file), "utf8")) as CpuProfile;
      return { name: `thread ${at}`, summary: summaryOf(found, window, checkout) };
    });
}

function keepProfiles(folder: string, keep: string, role: string): void {
  mkdirSync(keep, { recursive: true });
  for (const [at, file] of readdirSync(folder).sort().entries())
    renameSync(join(folder, file), join(keep, `${role}-${at}.cpuprofile`));
}

function print({ budget, tasks, foreign, threads }: Profiled, lines: number): void {
  const byRole = Object.entries(budget.usByRole).map(([role, us]) => `${role} ${us}`);
  console.log(
    `${Math.round(budget.ratePerSecond)} tasks/s, ${tasks} tasks; CPU µs per task: ${byRole.join(", ")}; ` +
      `other programs used ${foreign} cores`,
  );
  for (const { role, name, summary, tasks: own } of threads) {
    console.log(`\n${role}, ${name}: ${(summary.busyUs / own).toFixed(2)} µs per task`);
    for (const [title, rows] of [
      ["self time by file", summary.files],
      ["self time by function", summary.functions],
      ["functions with all they call", summary.inclusive],
    ] as const)
      console.log(
        [`  ${title}`, ...rows.slice(0, lines).map((row) => line(row, summary.busyUs, own))].join("\n"),
      );
  }
}

function line({ what, us }: Row, allUs: number, tasks: number): string {
  return `    ${((us / allUs) * 100).toFixed(1).padStart(5)} %  ${(us / tasks).toFixed(2).padStart(7)} µs  ${what}`;
}

/** The clock of the profiles. */
function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
