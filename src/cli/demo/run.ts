// One run of the demo: a broker, the members, three users who submit, the results, and everything that was
// started stopped again, however it ends.
// The one thing to know: a swarm that runs already is left alone; then this one has a name of its own.

import { setMaxListeners } from "node:events";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type FoundBroker, findBroker } from "../../broker/find-broker.ts";
import { stopBroker } from "../../broker/stop-broker.ts";
import type { Swarm } from "../../client/swarm.ts";
import { systemRandom } from "../../clock.ts";
import type { LogLevel } from "../../config/schema.ts";
import type { Settings } from "../../config/settings.ts";
import { WaggleError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { openSwarm } from "../connect.ts";
import { labelled } from "../format.ts";
import type { Output } from "../output.ts";
import type { VerbContext } from "../verb.ts";
import { type EndedTask, submitFor } from "./asking.ts";
import { type Member, startMember } from "./members.ts";
import { nextCommands } from "./next-commands.ts";
import { showProgress } from "./progress.ts";
import { type DemoSummary, troubledIn } from "./report.ts";
import { resultLine, writeResults } from "./results.ts";
import { type DemoTask, demoAgents, demoUsers, paceMs } from "./scenario.ts";
import { DemoTally } from "./tally.ts";

export interface DemoWork {
  /** Absolute. */
  readonly folder: string;
  /** Relative to it. */
  readonly files: readonly string[];
}

export interface DemoRun {
  readonly summary: DemoSummary;
  /** What to type next; works as it stands. */
  readonly nextCommands: readonly string[];
}

/** @throws WaggleError why it could not be carried through */
export async function runDemo(context: VerbContext, work: DemoWork): Promise<DemoRun> {
  const { output, shell } = context;
  const broker = await findBroker({ mode: "find-or-start", ...context.settings, env: shell.env });
  output.note(labelled("broker", brokerText(broker), output.noteColumns));
  const members: Member[] = [];
  try {
    const settings = await ownSwarm(context);
    const swarm = await startSwarm({ ...context, settings }, work, members);
    try {
      return await carryOut({ ...context, settings }, work, { swarm, members, broker });
    } finally {
      await swarm.close();
    }
  } finally {
    await stopAll(members, broker, context);
  }
}

/** A broker that was started here is stopped here. */
function brokerText({ sentence, local }: FoundBroker): string {
  if (local?.wasStarted !== true) return sentence;
  return sentence.replace(/; `waggle down` stops it$/, "; it ends with the demo");
}

/** The settings, with a swarm in which nobody leads. */
async function ownSwarm({ settings, signal }: VerbContext): Promise<Settings> {
  for (const swarm of [settings.swarm, "demo"]) {
    if (!(await isLed({ ...settings, swarm }, signal))) return { ...settings, swarm };
  }
  return { ...settings, swarm: `demo-${systemRandom.id(4)}` };
}

async function isLed(settings: Settings, signal: AbortSignal): Promise<boolean> {
  const swarm = await openSwarm({ settings, signal });
  try {
    await swarm.status({ timeoutMs: limits.leaderLookMs, signal });
    return true;
  } catch (error) {
    if (error instanceof WaggleError && error.code === "WAGGLE_NO_LEADER") return false;
    throw error;
  } finally {
    await swarm.close();
  }
}

/** A coordinator, then the agents; whoever is up already stands in `members` when one fails. */
async function startSwarm(context: VerbContext, work: DemoWork, members: Member[]): Promise<Swarm> {
  const { settings, logger, output, signal } = context;
  const logLevel: LogLevel = logger.isLevelEnabled("debug") ? "debug" : "silent";
  const coordinator = await startMember("coordinator", { settings, logLevel, role: "coordinator" }, signal);
  members.push(coordinator);
  output.note(labelled("durability", coordinator.ready.journal?.sentence ?? "", output.noteColumns));

  const pace = paceMs(work.files.length);
  const starting = demoAgents.map(async (agent) => {
    const order = { settings, logLevel, role: "agent", agent, paceMs: pace, folder: work.folder } as const;
    members.push(await startMember(agent.id, order, signal));
  });
  await Promise.allSettled(starting);
  await Promise.all(starting);
  const names = demoAgents.map(
    ({ id, kinds, maxConcurrent }) => `${id} (${kinds.join(", ")}; ${maxConcurrent} at once)`,
  );
  const where = `${names.join(", ")}, in processes of their own on the swarm ${settings.swarm}`;
  output.note(`${labelled("agents", where, output.noteColumns)}\n`);
  return await openSwarm({ settings, logger, signal });
}

interface Started {
  readonly swarm: Swarm;
  readonly members: readonly Member[];
  readonly broker: FoundBroker;
}

async function carryOut(context: VerbContext, work: DemoWork, started: Started): Promise<DemoRun> {
  const { swarm, members, broker } = started;
  const { output, settings } = context;
  const users = demoUsers(work.files, systemRandom.id(4)).filter(({ tasks }) => tasks.length > 0);
  const tally = new DemoTally(users.flatMap(({ tasks }) => tasks));
  const stopped = new AbortController();
  const signal = AbortSignal.any([context.signal, stopped.signal]);
  setMaxListeners(0, signal); // every task that is waited for listens
  watchDeaths(members, { output, signal, onCoordinator: (error) => stopped.abort(error) });
  const progress = showProgress(
    output,
    users.map(({ user, tasks }) => ({ user, total: tasks.length })),
  );
  const open = new Set<string>();
  const startedAt = performance.now();
  try {
    const { idx } = await swarm.status({ signal });
    const counting = countEvents(swarm, tally, { from: idx + 1, signal });
    counting.catch(() => undefined); // thrown below, unless something else went wrong before
    const hooks = {
      signal,
      onSubmit: (tasks: readonly DemoTask[]) => {
        for (const { id } of tasks) open.add(id);
      },
      onEnd: ({ id, user }: DemoTask) => {
        open.delete(id);
        progress.ended(user);
      },
    };
    const ended = (await Promise.all(users.map((user) => submitFor(swarm, user, hooks)))).flat();
    const tookMs = performance.now() - startedAt;
    await Promise.race([counting, setTimeout(limits.demoStopMs, undefined, { signal })]);
    const results = join(settings.dataFolder, "demo", "results.ndjson");
    await writeResults(
      results,
      ended.sort(byFile(work.files)).map(({ task, outcome }) => resultLine(task, outcome)),
    );
    return {
      summary: summaryOf({ tally, ended, tookMs, results, work }),
      nextCommands: nextCommands(context, { ended, goesOn: broker.local?.wasStarted === false }),
    };
  } finally {
    stopped.abort();
    progress.stop();
    if (context.signal.aborted) await cancelAll(swarm, open);
  }
}

/** What Ctrl-C leaves open would otherwise be the next run's work. */
async function cancelAll(swarm: Swarm, open: ReadonlySet<string>): Promise<void> {
  await Promise.allSettled([...open].map((id) => swarm.cancel(id, { timeoutMs: limits.demoStopMs })));
}

/** An agent's death is the swarm's daily bread: its attempts run elsewhere. Without a coordinator nothing does. */
function watchDeaths(
  members: readonly Member[],
  {
    output,
    signal,
    onCoordinator,
  }: { output: Output; signal: AbortSignal; onCoordinator: (error: Error) => void },
): void {
  for (const { name, ended } of members) {
    void ended.then((how) => {
      if (signal.aborted) return;
      if (name === "coordinator")
        onCoordinator(new WaggleError("WAGGLE_NO_LEADER", `the demo's coordinator ended (${how})`));
      else output.note(`${name} ended (${how}): what it ran goes on elsewhere`);
    });
  }
}

const talliedTypes = [
  "TaskSubmitted",
  "TaskAssigned",
  "TaskCompleted",
  "AttemptFailed",
  "TaskFailed",
  "TaskDeadLettered",
  "TaskCancelled",
  "TaskExpired",
];

/** Follows the journal from batch `from` on. Resolves when all the tally's tasks have ended there. */
async function countEvents(
  swarm: Swarm,
  tally: DemoTally,
  { from, signal }: { readonly from: number; readonly signal: AbortSignal },
): Promise<void> {
  for await (const event of swarm.events({ from, follow: true, types: talliedTypes, signal })) {
    tally.add(event);
    if (tally.hasAllEnded) return;
  }
}

function byFile(files: readonly string[]): (one: EndedTask, other: EndedTask) => number {
  const placeByFile = new Map(files.map((file, at) => [file, at]));
  const place = ({ task }: EndedTask) => placeByFile.get(task.file) ?? 0;
  return (one, other) => place(one) - place(other) || one.task.kind.localeCompare(other.task.kind);
}

interface Gathered {
  readonly tally: DemoTally;
  readonly ended: readonly EndedTask[];
  readonly tookMs: number;
  readonly results: string;
  readonly work: DemoWork;
}

function summaryOf({ tally, ended, tookMs, results, work }: Gathered): DemoSummary {
  return {
    files: work.files.length,
    tasks: ended.length,
    completed: ended.filter(({ outcome }) => outcome.state === "completed").length,
    tookMs: Math.round(tookMs),
    results,
    agents: tally.agents(demoAgents.map(({ id }) => id)),
    users: tally.users(),
    troubled: troubledIn(tally),
  };
}

/** Agents first, so that they can say good-bye; the broker last, if it was started here. */
async function stopAll(
  members: readonly Member[],
  broker: FoundBroker,
  { settings }: VerbContext,
): Promise<void> {
  const coordinators = members.filter(({ name }) => name === "coordinator");
  const agents = members.filter(({ name }) => name !== "coordinator");
  await Promise.all(agents.map((member) => member.stop()));
  await Promise.all(coordinators.map((member) => member.stop()));
  if (broker.local?.wasStarted === true) await stopBroker(settings.dataFolder);
}
