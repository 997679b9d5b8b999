// One run of the demo: starts a broker, a coordinator and agents, submits tasks, collects results, and stops all
// processes in every case. The demo uses its own swarm and data folder.

import { setMaxListeners } from "node:events";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { findBroker } from "../../broker/find-broker.ts";
import { stopBroker } from "../../broker/stop-broker.ts";
import type { Swarm } from "../../client/swarm.ts";
import { systemRandom } from "../../clock.ts";
import type { LogLevel } from "../../config/schema.ts";
import { counted } from "../../count-text.ts";
import { WaggleError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { labelled } from "../format.ts";
import type { Output } from "../output.ts";
import type { VerbContext } from "../verb.ts";
import { demoSettings, takeFolder } from "./folder.ts";
import { LiveView } from "./live-view.ts";
import { type Member, startMember } from "./members.ts";
import { type NextCommands, nextCommands } from "./next-commands.ts";
import { agentsIn, type DemoMoments, type DemoSummary, hasLostShare, troubledIn } from "./report.ts";
import { resultLine, writeResults } from "./results.ts";
import { type DemoPlan, type DemoTask, demoAgents, demoTasks, planOf, troubledAgent } from "./scenario.ts";
import { type EndedTask, submitEvenly } from "./submitting.ts";
import { DemoTally } from "./tally.ts";

export interface DemoWork {
  /** Absolute. */
  readonly folder: string;
  /** Relative to the folder. */
  readonly files: readonly string[];
}

export interface DemoRun {
  readonly summary: DemoSummary;
  readonly next: NextCommands;
}

/** @throws WaggleError with the reason of a failed run */
export async function runDemo(given: VerbContext, work: DemoWork): Promise<DemoRun> {
  const settings = demoSettings(given.settings);
  const { dataFolder } = settings;
  const release = await takeFolder(given.settings.dataFolder, dataFolder);
  const members: Member[] = [];
  let isComplete = false;
  try {
    const context = { ...given, settings };
    await startAll(context, work, members);
    const { summary, retriedTask } = await carryOut(context, work, members);
    isComplete = true;
    const { swarm } = settings;
    return { summary, next: nextCommands(given, { dataFolder, swarm, task: retriedTask }) };
  } finally {
    await stopAll(members, dataFolder);
    // The decisions of a complete run are kept until the next run. An interrupted run is removed.
    if (!isComplete)
      await rm(dataFolder, { recursive: true, force: true, maxRetries: limits.demoRemoveRetriesMax });
    release();
  }
}

/** A broker, then the coordinator and the agents at once. Whatever was started stands in `members` when one fails. */
async function startAll(context: VerbContext, work: DemoWork, members: Member[]): Promise<void> {
  const { settings, logger, output, shell, signal } = context;
  const broker = { ...settings, mode: "find-or-start", kind: "development", env: shell.env } as const;
  await findBroker(broker);
  signal.throwIfAborted();

  const logLevel: LogLevel = logger.isLevelEnabled("debug") ? "debug" : "silent";
  const { attemptMs } = planFor(work);
  const starting = [
    startMember("coordinator", { settings, logLevel, role: "coordinator" }, signal),
    ...demoAgents.map((agent) =>
      startMember(
        agent.id,
        { settings, logLevel, role: "agent", agent, attemptMs, folder: work.folder },
        signal,
      ),
    ),
  ];
  members.push(...starting.map(({ member }) => member));
  // The demo loads its part of the SDK while its processes start.
  await Promise.all([...starting.map(({ ready }) => ready), import("../connect.ts")]);
  const names = demoAgents.map(({ id }) => id).join(", ");
  output.note(
    labelled(
      "swarm",
      `a coordinator and the agents ${names}, each in a process of its own`,
      output.noteColumns,
    ),
  );
}

/** The remaining time of the demo limits the time of submission. */
function planFor(work: DemoWork): DemoPlan {
  return planOf(demoTasks(work.files, "").length, limits.demoMs - performance.now());
}

interface CarriedOut {
  readonly summary: DemoSummary;
  /** A task with a failed attempt, or any task. */
  readonly retriedTask: string | undefined;
}

async function carryOut(
  context: VerbContext,
  work: DemoWork,
  members: readonly Member[],
): Promise<CarriedOut> {
  const { output, settings } = context;
  const tasks = demoTasks(work.files, systemRandom.id(4));
  const plan = planFor(work);
  const tally = new DemoTally(tasks.map(({ id }) => id));
  const ended = new AbortController();
  const signal = AbortSignal.any([context.signal, ended.signal]);
  const timeUp = AbortSignal.timeout(
    Math.max(limits.demoSubmitMsMin, Math.floor(limits.demoMs - performance.now())),
  );
  for (const one of [signal, timeUp]) setMaxListeners(0, one); // every awaited task has a listener
  watchDeaths(members, { output, signal, onCoordinator: (error) => ended.abort(error) });

  const { openSwarm } = await import("../connect.ts");
  const swarm = await openSwarm(context);
  const { idx } = await swarm.status({ signal });
  const following = follow(swarm, tally, { from: idx + 1, signal });
  following.catch(() => undefined); // a failing reader only leaves figures out, and the report says so
  output.note(
    `${labelled("work", `${counted(tasks.length, "task")}: count, digest and outline of each file`, output.noteColumns)}\n`,
  );
  const startedAt = Date.now();
  const view = new LiveView(output, { tally, tasks: tasks.length, submitMs: plan.submitMs, startedAt });
  try {
    let submittedAt = startedAt;
    let submitted = 0;
    const trouble = breakAndRepair(members, plan, { tally, view, signal });
    trouble.catch(() => undefined); // awaited below
    const onSubmitted = (count: number) => {
      submitted = count;
      submittedAt = Date.now();
    };
    const delayed = () => tally.delayed;
    const outcomes = await submitEvenly(swarm, tasks, { ...plan, delayed, signal, timeUp, onSubmitted });
    const tookMs = Date.now() - startedAt;
    const isReported = () => tally.ended >= outcomes.length;
    for (let waited = 0; !isReported() && waited < limits.demoStopMs; waited += limits.demoStepMs)
      await setTimeout(limits.demoStepMs, undefined, { signal });
    view.stop();
    const results = join(dirname(settings.dataFolder), "results.ndjson");
    await writeResults(results, resultLines(outcomes, tasks));
    const moments = { ...(await trouble), submittedAt };
    return {
      summary: {
        files: new Set(tasks.slice(0, submitted).map(({ file }) => file)).size,
        tasks: submitted,
        completed: outcomes.filter(({ outcome }) => outcome.state === "completed").length,
        open: submitted - outcomes.length,
        leftOut: tasks.length - submitted,
        tookMs,
        results,
        agents: agentsIn(tally, moments),
        troubled: troubledIn(tally, moments),
        untroubled: typeof plan.trouble === "string" ? plan.trouble : null,
      },
      retriedTask: (outcomes.find(({ outcome }) => outcome.attempts > 1) ?? outcomes[0])?.task.id,
    };
  } finally {
    view.stop();
    ended.abort();
    await swarm.close();
  }
}

/** Breaks the troubled agent as planned. Repairs the agent when its share is lost, or at the end of the planned wait.
 *  @returns the instants */
async function breakAndRepair(
  members: readonly Member[],
  { trouble }: DemoPlan,
  {
    tally,
    view,
    signal,
  }: { readonly tally: DemoTally; readonly view: LiveView; readonly signal: AbortSignal },
): Promise<Pick<DemoMoments, "brokenAt" | "repairedAt">> {
  const agent = members.find(({ name }) => name === troubledAgent);
  if (typeof trouble === "string" || agent === undefined)
    return { brokenAt: undefined, repairedAt: undefined };
  await setTimeout(trouble.fromMs, undefined, { signal });
  const brokenAt = await agent.setBroken(true);
  if (brokenAt !== undefined) view.note(`the demo has broken ${troubledAgent}`);
  const until = Date.now() + trouble.toMs - trouble.fromMs;
  while (
    Date.now() < until &&
    !hasLostShare(tally, troubledAgent, { brokenAt: brokenAt ?? until, now: Date.now() })
  )
    await setTimeout(limits.demoStepMs, undefined, { signal });
  const repairedAt = await agent.setBroken(false);
  if (repairedAt !== undefined) view.note(`the demo has repaired ${troubledAgent}`);
  return { brokenAt, repairedAt };
}

/** The end of an agent stops nothing, because its attempts run elsewhere. The end of the coordinator stops the demo. */
function watchDeaths(
  members: readonly Member[],
  {
    output,
    signal,
    onCoordinator,
  }: {
    readonly output: Output;
    readonly signal: AbortSignal;
    readonly onCoordinator: (error: Error) => void;
  },
): void {
  for (const { name, ended } of members) {
    void ended.then((how) => {
      if (signal.aborted) return;
      if (name === "coordinator")
        onCoordinator(new WaggleError("WAGGLE_NO_LEADER", `the demo's coordinator ended (${how})`));
      else output.note(`the agent ${name} ended (${how}); its attempts run elsewhere`);
    });
  }
}

const talliedTypes = [
  "TaskAssigned",
  "TaskCompleted",
  "AttemptFailed",
  "TaskFailed",
  "TaskDeadLettered",
  "TaskCancelled",
  "TaskExpired",
];

/** Follows the journal from batch `from` on, until the signal aborts. */
async function follow(
  swarm: Swarm,
  tally: DemoTally,
  { from, signal }: { readonly from: number; readonly signal: AbortSignal },
): Promise<void> {
  for await (const event of swarm.events({ from, follow: true, types: talliedTypes, signal }))
    tally.add(event);
}

/** In the order of the tasks. */
function resultLines(outcomes: readonly EndedTask[], tasks: readonly DemoTask[]): string[] {
  const outcomeById = new Map(outcomes.map(({ task, outcome }) => [task.id, outcome]));
  return tasks.flatMap((task) => {
    const outcome = outcomeById.get(task.id);
    return outcome === undefined ? [] : [resultLine(task, outcome)];
  });
}

/** Agents first, so that they can leave the swarm; the broker last. */
async function stopAll(members: readonly Member[], dataFolder: string): Promise<void> {
  const [coordinators, agents] = [true, false].map((isCoordinator) =>
    members.filter(({ name }) => (name === "coordinator") === isCoordinator),
  );
  for (const group of [agents, coordinators]) await Promise.all((group ?? []).map((member) => member.stop()));
  await stopBroker(dataFolder);
}
