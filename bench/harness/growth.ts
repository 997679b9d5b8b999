// The cases of growth: how the cost of Waggle grows with agents, users, waiting tasks, followers and ended tasks, and
// while a base of the journal is written. The forms of a case take turns, each in a swarm of its own.

import { setTimeout as delay } from "node:timers/promises";
import type { Order } from "../peers/peer.ts";
import { fullWindows, type GrowthCase, IDLE_SETTLE_SECONDS, quickWindows, sustainedPlaces } from "./cases.ts";
import { until } from "./children.ts";
import { between, residentMiB, spent } from "./machine.ts";
import type { Figure } from "./record.ts";
import { type Measuring, measureInTurn, measureWindow, perTask } from "./rounds.ts";
import { median } from "./statistics.ts";
import { type StartMore, type System, type SystemName, type Systems, systemKinds } from "./systems.ts";

export interface Growth extends Measuring {
  readonly systems: Systems;
  readonly quick: boolean;
  readonly leftOut: { system: string; reason: string }[];
}

const bulk = { op: "closed", concurrency: 1024, ms: 2_000 } as const;
const steady = { op: "open", ratePerSecond: 2_000, ms: 3_000 } as const;

type Steady = Extract<Order, { readonly op: "closed" | "open" }>;

/** The load before a window. Shorter than among all systems, because the forms of a case pause for less time. */
function growthRampOf(order: Steady, { quick }: Growth): Steady {
  return { ...order, ms: quick ? 500 : 3_000 };
}

export async function measureGrowth(name: GrowthCase, growth: Growth): Promise<void> {
  switch (name) {
    case "durability":
      return await compare(growth, name, bulk, durabilityForms);
    case "agents":
      return await compare(growth, name, bulk, agentForms);
    case "users":
      return await compare(growth, name, bulk, userForms);
    case "waiting":
      return await compare(growth, name, bulk, waitingForms(growth.quick));
    case "followers":
      return await compare(growth, name, steady, followerForms);
    case "idle":
      return await idle(growth);
    case "acquire":
      return await acquire(growth);
    case "base":
      return await whileBaseIsWritten(growth);
    case "sustained":
      return await sustained(growth);
  }
}

interface Form extends StartMore {
  readonly name: string;
  readonly kind?: SystemName;
  /** No task runs before the windows. */
  readonly isCold?: boolean;
  /** @returns a check that runs after each window, or nothing */
  readonly prepare?: (system: System) => Promise<Check | undefined>;
}

/** @returns what the check measured
 *  @throws Error if the windows do not show what the form stands for */
type Check = () => Promise<Partial<Figure>>;

interface StartedForm {
  readonly form: Form;
  readonly system: System;
  readonly check: Check | undefined;
}

const durabilityForms: readonly Form[] = (
  ["waggle", "waggle-always", "waggle-r3", "waggle-dev"] as const
).map((kind) => ({
  name: kind,
  kind,
}));

/** Two processes share the agents. The capacity of all agents is at least the number of tasks in flight. */
const agentForms: readonly Form[] = [2, 100, 500].map((agents) => ({
  name: `${agents} agents`,
  settings: { agents: agents / 2, maxConcurrent: Math.ceil(1024 / agents) },
}));

const userForms: readonly Form[] = [1, 100, 10_000].map((users) => ({
  name: users === 1 ? "1 user" : `${users.toLocaleString("en")} users`,
  settings: { users },
}));

/** A swarm holds at most 10⁶ waiting tasks: room is left for the tasks in flight. */
function waitingForms(isQuick: boolean): readonly Form[] {
  return (isQuick ? [0, 1_000, 20_000] : [0, 1_000, 100_000, 990_000]).map((tasks) => ({
    name: `${tasks.toLocaleString("en")} waiting`,
    prepare: (system) => park(system, tasks),
  }));
}

async function park(system: System, tasks: number): Promise<undefined> {
  const { value } = await system.ask({ op: "call", name: "park", amount: tasks }, 600_000);
  if (value !== tasks) throw new Error(`${value} of ${tasks} tasks wait; the others were refused`);
}

const followerForms: readonly Form[] = [0, 10, 50].map((followers) => ({
  name: `${followers} followers`,
  hasFollowers: followers > 0,
  prepare: (system) => follow(system, followers),
}));

const EVENTS_PER_TASK_MIN = 3; // submitted, assigned, ended
/** Maximum wait for the events of a window. 50 followers on two cores fall behind, and need about a minute. */
const LAST_EVENTS_MS = 180_000;

/** Followers of all events, in a process of their own. Resolves when each follower sees events.
 *  @returns a check that each follower saw the events of all tasks since then */
export async function follow(
  { ask, followers }: Pick<System, "ask" | "followers">,
  connections: number,
  waitMs = LAST_EVENTS_MS,
): Promise<Check | undefined> {
  if (followers === undefined) return undefined;
  await followers.ask({ op: "call", name: "follow", amount: connections });
  const seen = async () =>
    (await followers.ask({ op: "call", name: "seen", amount: 1 })).value as readonly number[];
  const ended = async () => (await ask({ op: "call", name: "ended", amount: 1 })).value as number;
  const isFollowing = async () => {
    await ask({ op: "burst", tasks: 1 });
    return Math.min(...(await seen())) > 0;
  };
  await until("events at each follower", isFollowing);
  const endedBefore = await ended();
  return async () => {
    const from = performance.now();
    const tasks = (await ended()) - endedBefore;
    const areAllSeen = async () => missedEvents(await seen(), tasks) === undefined;
    await until("the last events", areAllSeen, waitMs).catch(() => undefined); // the next line throws
    const missed = missedEvents(await seen(), tasks);
    if (missed !== undefined) throw new Error(`${missed}, ${waitMs / 1000} s after a window`);
    return { caughtUpMs: performance.now() - from };
  };
}

/** @param seen number of events, per follower
 *  @returns undefined if each follower saw what the tasks imply */
export function missedEvents(seen: readonly number[], tasks: number): string | undefined {
  const implied = tasks * EVENTS_PER_TASK_MIN;
  const short = seen.filter((events) => events < implied);
  if (short.length === 0) return undefined;
  const [least, all] = [Math.min(...short), implied].map((events) => events.toLocaleString("en"));
  return `${short.length} of ${seen.length} followers missed events: the least saw ${least} of at least ${all}`;
}

/** A swarm makes its only base early in its warm-up: the windows of the forms show what the forms differ in. */
const onlyBaseInWarmUp = { WAGGLE_BASE_EVENTS: "30000", WAGGLE_BASE_SYNC: "24h" };

async function compare(
  growth: Growth,
  name: GrowthCase,
  order: Steady,
  forms: readonly Form[],
): Promise<void> {
  const started: StartedForm[] = [];
  for (const form of forms) {
    const found = await startForm(growth, `${name}-${form.name.replaceAll(" ", "-")}`, {
      ...form,
      coordinatorEnv: onlyBaseInWarmUp,
    });
    if (found !== undefined) started.push(found);
  }
  const refuted = new Set<string>();
  const turns = started.map(({ form, system, check }) => ({
    system,
    order,
    ramp: growthRampOf(order, growth),
    name: form.name,
    more: async () => {
      const coordinatorMiB = residentMiB(coordinatorOf(system));
      try {
        return { coordinatorMiB, ...(await check?.()) };
      } catch (error) {
        refuted.add(form.name);
        growth.failed.add(system);
        leaveOut(growth, form, error);
        return {};
      }
    },
  }));
  const figures: Figure[] = [];
  await measureInTurn(name, turns, { ...growth, add: (figure) => void figures.push(figure) });
  for (const { system } of started) await system.stop();
  for (const figure of figures) if (!refuted.has(figure.system)) growth.add(figure);
}

function leaveOut({ leftOut, say }: Growth, { name }: Form, error: unknown): void {
  const reason = error instanceof Error ? error.message : String(error);
  leftOut.push({ system: name, reason });
  say(`! ${name} is left out: ${reason}`);
}

/** Starts, warms up and prepares a form. @returns undefined if that fails: the form is left out */
async function startForm(growth: Growth, name: string, form: Form): Promise<StartedForm | undefined> {
  let system: System | undefined;
  try {
    system = await growth.systems.start(systemKinds[form.kind ?? "waggle"], name, form);
    if (!form.isCold)
      await system.ask({ ...bulk, ms: (growth.quick ? quickWindows : fullWindows).growthWarmMs });
    return { form, system, check: await form.prepare?.(system) };
  } catch (error) {
    leaveOut(growth, form, error);
    await system?.stop();
    return undefined;
  }
}

/** Starts a form, measures it and stops it. If the measurement fails, the run goes on without the rest of it. */
async function withForm(
  growth: Growth,
  name: string,
  form: Form,
  measure: (system: System) => Promise<void>,
): Promise<void> {
  const started = await startForm(growth, name, form);
  if (started === undefined) return;
  const { system } = started;
  try {
    await measure(system);
  } catch (error) {
    leaveOut(growth, form, error);
  } finally {
    await system.stop();
  }
}

async function idle(growth: Growth): Promise<void> {
  const agents = 100;
  const name = `${agents} agents`;
  const settings = { agents: agents / 2, maxConcurrent: 4 };
  await withForm(growth, "idle", { name, settings, isCold: true }, (system) =>
    measureIdle(growth, name, system),
  );
}

/** The cost of doing nothing. A second counts as a task. */
async function measureIdle(growth: Growth, name: string, system: System): Promise<void> {
  const { pace, rounds, add } = growth;
  const seconds = growth.quick ? 5 : 10;
  // V8 compiles the code of a young process meanwhile.
  await delay((growth.quick ? 5 : IDLE_SETTLE_SECONDS) * 1000);
  for (let round = 1; round <= rounds; round += 1) {
    await pace.calm();
    const before = spent(system.pids);
    await delay(seconds * 1000);
    const { usByRole, ...load } = between(before, spent(system.pids));
    add({ case: "idle", system: name, round, tasks: seconds, usByRole: perTask(usByRole, seconds), ...load });
    pace.ended(round, rounds);
  }
}

async function acquire(growth: Growth): Promise<void> {
  await withForm(growth, "acquire", { name: "acquire", isCold: true }, (system) =>
    measureAcquire(growth, system),
  );
}

async function measureAcquire({ pace, rounds, add }: Growth, system: System): Promise<void> {
  const connections = 5;
  for (let round = 1; round <= rounds; round += 1) {
    await pace.calm();
    const before = spent(system.pids);
    const { value } = await system.ask({ op: "call", name: "acquire", amount: connections });
    const times = value as number[];
    const { usByRole: _, ...load } = between(before, spent(system.pids));
    add({ case: "acquire", system: "waggle", round, p50: median(times), max: Math.max(...times), ...load });
    pace.ended(round, rounds);
  }
}

const LAST_BASE_MS = 20_000;

/** Two swarms hold the same waiting tasks. The first has made its only base before the windows; the second makes one
 *  base after the other while there are tasks. */
async function whileBaseIsWritten(growth: Growth): Promise<void> {
  const waiting = growth.quick ? 50_000 : 300_000;
  const bases: Interval[] = [];
  const prepare = (system: System) => park(system, waiting);
  const once: Form = {
    name: "full load",
    coordinatorEnv: { WAGGLE_BASE_EVENTS: String(waiting / 2), WAGGLE_BASE_SYNC: "24h" },
    prepare,
  };
  const always: Form = {
    name: "full load, base",
    coordinatorEnv: { WAGGLE_BASE_EVENTS: "1000", WAGGLE_BASE_SYNC: "1ms" },
    onLog: ({ msg = "", tookMs }) => {
      const toMs = performance.now();
      if (tookMs !== undefined && msg.includes("with a base")) bases.push({ fromMs: toMs - tookMs, toMs });
    },
    prepare,
  };
  await withForm(growth, "base-without", once, (without) =>
    withForm(growth, "base-within", always, (within) => measureBases(growth, { without, within, bases })),
  );
}

interface BaseSwarms {
  /** Makes no base within the windows. */
  readonly without: System;
  readonly within: System;
  /** The bases of `within` so far. */
  readonly bases: readonly Interval[];
}

async function measureBases(growth: Growth, { without, within, bases }: BaseSwarms): Promise<void> {
  const ms = growth.quick ? 2_000 : 4_000;
  const windows: { readonly figure: Figure; readonly toMs: number }[] = [];
  const measuring: Measuring = {
    ...growth,
    add: (figure) => void windows.push({ figure, toMs: performance.now() }),
  };
  const turns = (load: string, order: Steady) => {
    const ramp = growthRampOf(order, growth);
    return [
      { system: without, order, ramp, name: load },
      { system: within, order, ramp, name: `${load}, base` },
    ];
  };
  await measureInTurn("base", turns("full load", { ...bulk, ms }), measuring);
  const rates = windows.flatMap(({ figure }) =>
    figure.system === "full load" && figure.ratePerSecond !== undefined ? [figure.ratePerSecond] : [],
  );
  const half = { op: "open", ratePerSecond: Math.round(median(rates) / 2), ms } as const;
  if (rates.length > 0) await measureInTurn("base", turns("half load", half), measuring);
  // A base is known once it is complete; the last one may begin within the last window.
  const lastMs = windows.at(-1)?.toMs ?? 0;
  const isComplete = () => bases.some(({ toMs }) => toMs >= lastMs);
  await until("the last base", isComplete, LAST_BASE_MS).catch(() => undefined);
  for (const { figure, toMs } of windows) {
    const isWithin = figure.system.endsWith("base") && figure.ms !== undefined;
    const window = { fromMs: toMs - (figure.ms ?? 0), toMs };
    growth.add({ ...figure, ...(isWithin ? { baseShare: shareOf(window, bases) } : {}) });
  }
}

interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The part of a window in which a base was written. */
export function shareOf({ fromMs, toMs }: Interval, bases: readonly Interval[]): number {
  const writtenMs = bases.reduce(
    (sum, base) => sum + Math.max(0, Math.min(toMs, base.toMs) - Math.max(fromMs, base.fromMs)),
    0,
  );
  return writtenMs / (toMs - fromMs);
}

async function sustained(growth: Growth): Promise<void> {
  await withForm(growth, "sustained", { name: "sustained" }, (system) => measureSustained(growth, system));
}

/** Full load for 90 s at least, and until 30 s lie past a million ended tasks. */
async function measureSustained({ pace, add, say, quick }: Growth, system: System): Promise<void> {
  const stepMs = 5_000;
  const [secondsMin, secondsMax, pastMin] = quick ? [20, 20, 0] : [90, 240, 6];
  const from = performance.now();
  const lasts = (seconds: number) => performance.now() - from < seconds * 1000;
  let ended = 0;
  let past = 0;
  await pace.calm();
  for (let round = 1; lasts(secondsMin) || (past < pastMin && lasts(secondsMax)); round += 1) {
    past += ended >= 1_000_000 ? 1 : 0;
    const place = placeOf(ended);
    const figure = await measureWindow(system, { op: "closed", concurrency: 1024, ms: stepMs });
    const coordinatorMiB = residentMiB(coordinatorOf(system));
    add({ case: "sustained", system: place, round, ...figure, endedBefore: ended, coordinatorMiB });
    ended += figure.tasks ?? 0;
    pace.ended(round, Math.max(round, (secondsMin * 1000) / stepMs));
  }
  say(`sustained: ${ended.toLocaleString("en")} tasks ended`);
}

function placeOf(ended: number): string {
  if (ended < 100_000) return sustainedPlaces.first;
  if (ended < 500_000) return sustainedPlaces.warming;
  return ended < 1_000_000 ? sustainedPlaces.before : sustainedPlaces.past;
}

function coordinatorOf({ pids }: System): number {
  return pids["coordinator"]?.[0] ?? Number.NaN;
}
