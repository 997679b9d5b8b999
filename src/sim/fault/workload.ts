// The operations of a seed's clients and the characters of its agents, drawn in advance as data. So a failing seed can
// be repeated with fewer of them.

import type { RefusedSlot } from "../../agent/slot-refusal.ts";
import type { AcquireOptions } from "../../agent/slots.ts";
import type { HoldTargetOption } from "../../client/operations.ts";
import type { TaskRequest } from "../../client/task-request.ts";
import type { AuditRetention } from "../../coordinator/compacting/segment-retention.ts";
import type { KindPatch, PolicyPatch, ProjectPatch, RatePatch } from "../../core/settings-patch.ts";
import { kind } from "../../ids.ts";
import type { SeededRandom } from "../random.ts";
import { drawGrants, drawGroup, drawGroups, type GrantOperation } from "./grants.ts";
import { type Orders, payloadOf } from "./payload.ts";
import type { Nodes } from "./schedule.ts";
import { WALL_START_MS } from "./session.ts";

/** An operation of a client. */
export type Operation = { readonly atMs: number; readonly client: string } & (
  | { readonly does: "submit"; readonly tasks: readonly TaskRequest[] }
  | {
      readonly does: "cancel" | "retry" | "revoke" | "query" | "await";
      readonly task: string;
      readonly project: string;
    }
  | {
      readonly does: "reschedule";
      readonly task: string;
      readonly project: string;
      readonly notBefore: number;
    }
  | { readonly does: "pause" | "resume"; readonly project: string | undefined }
  | HoldOperation
  | { readonly does: "drain" | "undrain"; readonly agent: string }
  | { readonly does: "set-project"; readonly project: string; readonly patch: ProjectPatch }
  | { readonly does: "set-kind"; readonly kind: string; readonly patch: KindPatch }
  | { readonly does: "set-policy"; readonly patch: PolicyPatch }
  | { readonly does: "set-rate"; readonly type: string; readonly patch: RatePatch }
  | GrantOperation
  | { readonly does: "set-resource"; readonly resource: string; readonly slots: number }
  | {
      readonly does: "acquire";
      readonly resources: readonly string[];
      readonly holdMs: number;
      readonly purpose: SlotPurpose;
    }
);

/** The terms of a request for slots, and the behaviour of the holder. */
export interface SlotPurpose {
  readonly terms: Pick<AcquireOptions, "tokens" | "project" | "user" | "label" | "as" | "idleTimeoutMs">;
  /** Tokens to report before the release. */
  readonly used?: number;
  /** The holder never touches the slots. */
  readonly isSilent: boolean;
  /** The provider refuses the work, with or without a time. */
  readonly refused?: RefusedSlot;
}

type HoldOperation =
  | { readonly does: "hold"; readonly target: HoldTargetOption; readonly forMs: number }
  | { readonly does: "unhold"; readonly target: HoldTargetOption };

/** The properties of an agent. */
export interface Character {
  readonly id: string;
  readonly kinds: readonly string[];
  readonly role?: string;
  readonly type?: string;
  readonly group?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly maxConcurrent: number;
  readonly prefetch: number;
  /** Share of attempts that fail at the agent, whatever their orders. */
  readonly failShare: number;
  /** Factor on the ordered duration of handlers. */
  readonly slowness: number;
}

export interface CoordinatorCharacter {
  readonly id: string;
  readonly leaderTimeoutMs: number;
  /**
   * Events between snapshots, and the part of the journal to keep: small, so that a seed meets purges and restarts from
   * snapshots.
   */
  readonly everyEvents: number;
  readonly retention: AuditRetention;
  /** Time after which a server counts as having synced stored data: short, for the same reason. */
  readonly baseSyncMs: number;
}

export interface ClientCharacter {
  readonly id: string;
  readonly project: string;
  readonly user: string;
  /** Whether a restarted client repeats operations with unknown outcomes; otherwise it has forgotten them. */
  readonly remembers: boolean;
}

export interface Workload {
  readonly coordinators: readonly CoordinatorCharacter[];
  readonly agents: readonly Character[];
  readonly clients: readonly ClientCharacter[];
  readonly operations: readonly Operation[];
  /** Groups of agents that grants may bound; none in a seed without grants. */
  readonly groups: readonly string[];
}

export const kinds = ["count", "outline", "review", "embed"];
export const projects = ["acme", "beta", "core"];
const users = ["ann", "bob", "cy"];
export const resources = ["gpt", "gpu"];
/** Types of agents, and so of rates. */
export const types = ["small", "large"];
/** The agent for every kind and role, so that every waiting task can run after all faults heal. */
const MAID = "a1";
const ROLE = "expert";
/** Label and its values; the maid has the last value. */
const LABEL = "zone";
const zones = ["eu", "us", "ap"];
/** Sessions that tasks belong to, each of any project. */
const affinities = ["s1", "s2", "s3", "s4"];
/** Share of seeds with two coordinators. The rest have three, for the choice between two standbys finds most bugs. */
const TWO_SHARE = 0.3;

export function nodesOf({ coordinators, agents, clients }: Workload): Nodes {
  return { coordinators: idsOf(coordinators), agents: idsOf(agents), clients: idsOf(clients) };
}

/** Draws operations before `untilMs` only. */
export function drawWorkload(random: SeededRandom, untilMs: number): Workload {
  const shape = random.split("shape");
  const coordinators = names("c", shape.chance(TWO_SHARE) ? 2 : 3).map((id) =>
    drawCoordinator(random.split(id), id),
  );
  const clients = names("k", 1 + shape.below(3)).map((id) => drawClient(random.split(id), id));
  const grants = random.split("grants");
  const groups = drawGroups(grants);
  const agents = names("a", 3 + shape.below(18)).map((id) => ({
    ...drawAgent(random.split(id), id),
    ...(groups.length === 0 || id === MAID ? {} : groupOf(grants.split(id))),
  }));
  const operations = new OperationDrawer(random.split("operations"), { clients, agents }).draw(untilMs);
  if (groups.length > 0)
    operations.push(
      ...drawGrants(grants, { of: groups, clients: idsOf(clients), names: grantNames, untilMs }),
    );
  return { coordinators, agents, clients, operations, groups };
}

const grantNames = {
  kinds,
  projects,
  resources,
  types,
  roles: [ROLE],
  labels: zones.map((zone) => `${LABEL}=${zone}`),
};

function groupOf(random: SeededRandom): Pick<Character, "group"> {
  const group = drawGroup(random);
  return group === undefined ? {} : { group };
}

function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${prefix}${at + 1}`);
}

function idsOf(nodes: readonly { readonly id: string }[]): string[] {
  return nodes.map(({ id }) => id);
}

function drawCoordinator(random: SeededRandom, id: string): CoordinatorCharacter {
  return {
    id,
    leaderTimeoutMs: random.pick([1_000, 2_000, 3_000]),
    everyEvents: 100 + random.below(400),
    retention: { ageMs: 5_000 + random.below(60_000), bytes: Number.POSITIVE_INFINITY },
    baseSyncMs: random.below(5_000),
  };
}

function drawClient(random: SeededRandom, id: string): ClientCharacter {
  return { id, project: random.pick(projects), user: random.pick(users), remembers: random.chance(0.7) };
}

function drawAgent(random: SeededRandom, id: string): Character {
  const isMaid = id === MAID;
  return {
    id,
    kinds: isMaid ? kinds : kinds.filter((_, at) => at === 0 || random.chance(0.5)),
    ...(isMaid || random.chance(0.3) ? { role: ROLE } : {}),
    ...(!isMaid && random.chance(0.5) ? { type: random.pick(types) } : {}),
    labels: labelsOf(random.split("labels"), isMaid),
    maxConcurrent: 1 + random.below(isMaid ? 8 : 4),
    prefetch: random.chance(0.3) ? random.below(4) : 0,
    failShare: isMaid || random.chance(0.6) ? 0 : random.fraction() * random.fraction(),
    slowness: random.chance(0.7) ? 1 : 1 + random.exponential(4),
  };
}

/** Drawn apart, as the needs of tasks are: other draws of a seed stay as they were before there were labels. */
function labelsOf(random: SeededRandom, isMaid: boolean): Character["labels"] {
  if (isMaid) return { [LABEL]: zones.at(-1) as string };
  return random.chance(0.6) ? { [LABEL]: random.pick(zones) } : {};
}

/** Every list of needed zones has the maid's. */
/** Tokens, an account, a queue and an idle time, each in some requests for slots. */
function purposeOf(random: SeededRandom): SlotPurpose {
  const terms = {
    ...(random.chance(0.6) ? { tokens: 100 * (1 + random.below(80)) } : {}),
    ...(random.chance(0.6) ? { project: random.pick(projects), user: random.pick(users) } : {}),
    ...(random.chance(0.3) ? { as: random.pick(["analyst", "writer"]), label: "report" } : {}),
    ...(random.chance(0.4) ? { idleTimeoutMs: 1_000 + random.below(2_000) } : {}),
  };
  return {
    terms,
    ...(random.chance(0.5) ? { used: random.below(9_000) } : {}),
    isSilent: random.chance(0.4),
  };
}

/** In some requests for slots: mostly with a time. @param isTimeless the provider names no time, and refuses often */
function refusalOf(random: SeededRandom, isTimeless: boolean): Pick<SlotPurpose, "refused"> {
  if (!random.chance(isTimeless ? 0.7 : 0.15)) return {};
  return { refused: isTimeless || random.chance(0.2) ? {} : { retryAfterMs: 100 + random.below(4_000) } };
}

function wishesOf(random: SeededRandom): Pick<TaskRequest, "needs" | "affinity" | "attributes"> {
  const home = zones.at(-1) as string;
  return {
    ...(random.chance(0.12)
      ? { needs: { [LABEL]: random.chance(0.5) ? home : [random.pick(zones), home] } }
      : {}),
    ...(random.chance(0.25) ? { affinity: random.pick(affinities) } : {}),
    ...(random.chance(0.1) ? { attributes: { ticket: `T-${random.below(20)}` } } : {}),
  };
}

/** Share of tasks that take longer than an agent may be silent. */
const LONG_SHARE = 0.06;
/** Share of seeds whose provider names no time with its refusals. */
const TIMELESS_SHARE = 0.2;
/** Mean time between two operations of all clients, ms. */
const GAP_MS = 900;
/** Mean time between two queries of a program that watches its tasks, ms. */
const WATCH_GAP_MS = 500;
/** Share of seeds with an operator who revokes and reschedules tasks; the mean time between two such operations, ms. */
const MOVE_SHARE = 0.4;
const MOVE_GAP_MS = 1_500;
/** Time of the first settings, and the interval between changes, ms. */
const FIRST_OPERATION_MS = 300;

class OperationDrawer {
  readonly #random: SeededRandom;
  readonly #wishes: SeededRandom;
  readonly #purposes: SeededRandom;
  readonly #refusals: SeededRandom;
  readonly #isTimeless: boolean;
  readonly #clients: readonly ClientCharacter[];
  readonly #agents: readonly Character[];
  readonly #tasks: { readonly request: TaskRequest; readonly project: string }[] = [];
  readonly #cancelled: { readonly request: TaskRequest; readonly project: string }[] = [];

  constructor(
    random: SeededRandom,
    { clients, agents }: { clients: readonly ClientCharacter[]; agents: readonly Character[] },
  ) {
    this.#random = random;
    this.#wishes = random.split("wishes");
    this.#purposes = random.split("purposes");
    this.#refusals = random.split("refusals");
    this.#isTimeless = this.#refusals.chance(TIMELESS_SHARE);
    this.#clients = clients;
    this.#agents = agents;
  }

  draw(untilMs: number): Operation[] {
    const operations: Operation[] = resources.map((resource) => ({
      ...this.#when(FIRST_OPERATION_MS),
      does: "set-resource",
      resource,
      slots: 1 + this.#random.below(4),
    }));
    const gapMs = GAP_MS * (0.4 + 2 * this.#random.fraction());
    for (let atMs = FIRST_OPERATION_MS; atMs < untilMs; atMs += this.#random.exponential(gapMs))
      operations.push(this.#operation(Math.round(atMs)));
    if (this.#random.chance(0.5)) operations.push(...this.#watch(operations, untilMs));
    if (this.#random.chance(MOVE_SHARE)) operations.push(...this.#moves(operations, untilMs));
    return operations;
  }

  /** An operator takes tasks from agents, and changes when waiting tasks may start. Recent tasks run or wait. */
  #moves(operations: readonly Operation[], untilMs: number): Operation[] {
    const random = this.#random;
    const submits = operations.filter((operation) => operation.does === "submit");
    const moves: Operation[] = [];
    for (let atMs = FIRST_OPERATION_MS; atMs < untilMs; atMs += random.exponential(MOVE_GAP_MS)) {
      const recent = submits.filter((operation) => operation.atMs < atMs).slice(-5);
      if (recent.length === 0) continue;
      const { id: task = "", project = "" } = random.pick(random.pick(recent).tasks);
      const when = { ...this.#when(Math.round(atMs)), task, project };
      if (random.chance(0.5)) moves.push({ ...when, does: "revoke" });
      else {
        const notBefore = WALL_START_MS + Math.round(atMs) + random.below(10_000) - 2_000;
        moves.push({ ...when, does: "reschedule", notBefore });
      }
    }
    return moves;
  }

  /** A program shows the states of its tasks on a screen: frequent queries meet each moment of a fail-over. */
  #watch(operations: readonly Operation[], untilMs: number): Operation[] {
    const submits = operations.filter((operation) => operation.does === "submit");
    const { client } = this.#when(0);
    const questions: Operation[] = [];
    for (let atMs = FIRST_OPERATION_MS; atMs < untilMs; atMs += this.#random.exponential(WATCH_GAP_MS)) {
      const known = submits.filter((operation) => operation.atMs < atMs);
      if (known.length === 0) continue;
      const { id: task = "", project = "" } = this.#random.pick(this.#random.pick(known).tasks);
      questions.push({ atMs: Math.round(atMs), client, does: "query", task, project });
    }
    return questions;
  }

  #when(atMs: number): { readonly atMs: number; readonly client: string } {
    return { atMs, client: this.#random.pick(this.#clients).id };
  }

  #operation(atMs: number): Operation {
    const when = this.#when(atMs);
    const roll = this.#random.fraction();
    const known = this.#tasks.length === 0 ? undefined : this.#random.pick(this.#tasks);
    if (roll < 0.55 || known === undefined) return { ...when, does: "submit", tasks: this.#some(atMs) };
    const { request, project } = known;
    const task = request.id ?? "";
    if (roll < 0.63) return { ...when, does: "submit", tasks: [this.#again(request)] };
    if (roll < 0.73) {
      this.#cancelled.push(known);
      return { ...when, does: "cancel", task, project };
    }
    if (roll < 0.77) return { ...when, does: "query", task, project };
    if (roll < 0.81) return { ...when, does: "await", task, project };
    if (roll < 0.85) return { ...when, does: "retry", ...this.#retried(known) };
    if (roll < 0.9) return this.#acquire(when);
    return this.#operate(when);
  }

  /** Prefers tasks drawn to be cancelled: most other tasks complete, and a completed task has no retry. */
  #retried(known: { readonly request: TaskRequest; readonly project: string }) {
    const isAny = this.#cancelled.length === 0 || this.#random.chance(0.4);
    const { request, project } = isAny ? known : this.#random.pick(this.#cancelled);
    return { task: request.id ?? "", project };
  }

  #some(atMs: number): TaskRequest[] {
    const many = this.#random.chance(0.08) ? 10 + this.#random.below(40) : 1 + this.#random.below(3);
    return Array.from({ length: many }, () => {
      const request = this.#task(atMs);
      this.#tasks.push({ request, project: request.project ?? "" });
      return request;
    });
  }

  /** A submission under a used id, with the same or different content. */
  #again(request: TaskRequest): TaskRequest {
    const other = payloadOf({ does: "complete", ms: 1, limitMs: request.timeoutMs ?? 0 });
    return this.#random.chance(0.7) ? request : { ...request, payload: other };
  }

  #task(atMs: number): TaskRequest {
    const random = this.#random;
    const wallMs = WALL_START_MS + atMs;
    const isLong = random.chance(LONG_SHARE);
    const timeoutMs = isLong ? 40_000 + random.below(20_000) : 3_000 + random.below(20_000);
    const stallMs = random.chance(0.08) ? 1_000 + random.below(4_000) : undefined;
    const limitMs = Math.min(timeoutMs, stallMs ?? timeoutMs);
    const project = random.pick(projects);
    const ordinal = 1 + this.#tasks.filter((other) => other.project === project).length; // ids repeat across projects
    return {
      id: `t${ordinal}`,
      kind: random.pick(kinds),
      project,
      user: random.pick(users),
      payload: payloadOf({ ...(isLong ? this.#longOrders() : this.#orders()), limitMs }),
      timeoutMs,
      maxAttempts: 1 + random.below(4),
      ...(random.chance(0.1) ? { role: ROLE } : {}),
      ...(random.chance(0.2) ? { weight: 1 + random.below(9) } : {}),
      ...(random.chance(0.2) ? { priority: random.below(200) } : {}),
      ...(random.chance(0.2) ? { tokens: 100 * (1 + random.below(50)) } : {}),
      ...(random.chance(0.08) ? { deadline: wallMs + 500 + random.below(30_000) } : {}),
      ...(random.chance(0.08) ? { notBefore: wallMs + random.below(20_000) } : {}),
      ...(stallMs === undefined ? {} : { stallMs }),
      ...wishesOf(this.#wishes),
    };
  }

  /** Orders for longer than an agent may be silent, and longer than a lease. */
  #longOrders(): Omit<Orders, "limitMs"> {
    return { does: "complete", ms: 10_000 + this.#random.below(20_000), reportsProgress: true };
  }

  #orders(): Omit<Orders, "limitMs"> {
    const random = this.#random;
    const ms = Math.round(random.chance(0.8) ? random.exponential(300) : random.exponential(4_000));
    const more = {
      ...(random.chance(0.3) ? { tokens: 50 * random.below(200) } : {}),
      ...(random.chance(0.1) ? { acquires: random.chance(0.5) ? resources : [random.pick(resources)] } : {}),
      ...(random.chance(0.2) ? { reportsProgress: true as const } : {}),
    };
    const roll = random.fraction();
    if (roll < 0.72) return { does: "complete", ms, ...more };
    const times = 1 + random.below(3);
    if (roll < 0.82) return { does: "fail", ms, times, ...more };
    if (roll < 0.88) return { does: "infrastructure", ms, times, ...this.#hold(), ...more };
    if (roll < 0.91) return { does: "invalid", ms, ...more };
    if (roll < 0.95) return { does: "hang", ms, ...more };
    return roll < 0.98 ? { does: "stay", ms: ms + 2_000, ...more } : { does: "kill", ms, ...more };
  }

  /** What a refusal asks to hold: mostly a time, of any scope. */
  #hold(): Pick<Orders, "hold"> {
    const random = this.#random;
    const scope = random.pick([undefined, "agent", "type", { resource: random.pick(resources) }] as const);
    return {
      hold: {
        ...(scope === undefined ? {} : { scope }),
        ...(random.chance(0.7) ? { retryAfterMs: 100 + random.below(5_000) } : {}),
      },
    };
  }

  #acquire(when: { readonly atMs: number; readonly client: string }): Operation {
    const wanted = this.#random.chance(0.3) ? resources : [this.#random.pick(resources)];
    return {
      ...when,
      does: "acquire",
      resources: wanted,
      holdMs: Math.round(this.#random.exponential(1_500)),
      purpose: { ...purposeOf(this.#purposes), ...refusalOf(this.#refusals, this.#isTimeless) },
    };
  }

  #operate(when: { readonly atMs: number; readonly client: string }): Operation {
    const random = this.#random;
    const project = random.pick(projects);
    switch (random.below(10)) {
      case 8:
        return { ...when, ...this.#holdOperation() };
      case 0:
        return { ...when, does: "pause", project: random.chance(0.8) ? project : undefined };
      case 1:
        return { ...when, does: "resume", project: random.chance(0.5) ? project : undefined };
      case 2:
        return { ...when, does: "drain", agent: random.pick(this.#agents).id };
      case 3:
        return { ...when, does: "undrain", agent: random.pick(this.#agents).id };
      case 4:
      case 5:
        return { ...when, does: "set-project", project, patch: this.#projectPatch() };
      case 6:
        return { ...when, does: "set-kind", kind: random.pick(kinds), patch: this.#kindPatch() };
      case 7:
        return { ...when, does: "set-policy", patch: this.#policyPatch() };
      default:
        return random.chance(0.5)
          ? { ...when, does: "set-resource", resource: random.pick(resources), slots: 1 + random.below(4) }
          : {
              ...when,
              does: "set-rate",
              type: random.pick(types),
              patch: {
                window: "per_minute",
                tokensMax: 10_000 + random.below(100_000),
                sliding: random.chance(0.5),
              },
            };
    }
  }

  #holdOperation(): HoldOperation {
    const random = this.#random;
    const target = random.pick([
      { agent: random.pick(this.#agents).id },
      { type: random.pick(types) },
      { resource: random.pick(resources) },
    ]);
    if (random.chance(0.3)) return { does: "unhold", target };
    return { does: "hold", target, forMs: 100 + random.below(20_000) };
  }

  #projectPatch(): ProjectPatch {
    const random = this.#random;
    const budget = { tokens: 5_000 + random.below(100_000), windowMs: 10_000 + random.below(60_000) };
    const mode = budget.tokens % 4 === 0 ? "reject" : "wait";
    return {
      creditWeight: 1 + random.below(4),
      ...(random.chance(0.5) ? { budget: random.chance(0.7) ? { ...budget, mode } : null } : {}),
      ...(random.chance(0.3) ? { maxConcurrent: random.chance(0.5) ? 1 + random.below(10) : null } : {}),
      ...(random.chance(0.2) ? { queueMax: random.chance(0.5) ? 20 + random.below(100) : null } : {}),
      ...(budget.tokens % 3 === 0 ? { results: budget.tokens % 2 === 0 ? "hash" : "whole" } : {}),
    };
  }

  #kindPatch(): KindPatch {
    const random = this.#random;
    return {
      importance: 0.5 + random.below(4),
      ...(random.chance(0.3) ? { cheaper: random.chance(0.5) ? kind(random.pick(kinds)) : null } : {}),
    };
  }

  #policyPatch(): PolicyPatch {
    const random = this.#random;
    const rules = random.pick(["waggle", "budget", "loco", "vapora", "lucio"] as const);
    return {
      ...(random.chance(0.6) ? { rules } : {}),
      lambda: random.fraction(),
      ...(random.chance(0.3) ? { topN: random.chance(0.5) ? 2 + random.below(30) : null } : {}),
    };
  }
}
