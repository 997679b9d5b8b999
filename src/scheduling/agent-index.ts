// All agents, ranked for the kinds of waiting tasks, kept from round to round: a round costs what changed, not the
// number of agents. `touch` reports a changed row, and the index reads the row at once, while it is in the processor's
// cache. Among ten thousand agents, fetching rows again for the round is most of the cost. Derived from the state
// alone: a new index ranks the same.

import type { AgentId, Instant, Kind } from "../ids.ts";
import { limits } from "../limits.ts";
import type { Grants } from "../state/grant.ts";
import { holdScopes } from "../state/hold.ts";
import { meetsNeeds } from "../state/needs.ts";
import type { Policy } from "../state/policy.ts";
import { queueKey } from "../state/queues.ts";
import { type AgentRow, type HoldRow, runsTasks, type SwarmState, type TaskQueue } from "../state/state.ts";
import { backlogOf, hasBacklog } from "./backlog.ts";
import { Contender } from "./candidate.ts";
import { type Calling, isLive } from "./eligibility.ts";
import { rateGate } from "./gates.ts";
import { loadOf, maximaOf, type Queue } from "./load.ts";
import { type Census, Pool } from "./pool.ts";

type Status = keyof Census;

/** An agent as last read. */
interface Sighting {
  readonly id: AgentId;
  /** Absent while the agent runs no tasks. */
  status: Status | undefined;
  /** Absent while the agent is offline. */
  contender: Contender | undefined;
}

export class AgentIndex {
  readonly #state: SwarmState;
  readonly #sightingById = new Map<AgentId, Sighting>();
  readonly #poolByKey = new Map<string, Pool>();
  readonly #poolsByKind = new Map<Kind, Pool[]>();
  /** Online agents with more attempts than they run at once, or with waiting slot leases. */
  readonly #backlogged = new Set<Contender>();
  readonly #census: Census = { offline: 0, draining: 0, live: 0 };
  readonly #liveByKind = new Map<Kind, number>();
  #policy: Policy;
  #grants: Grants;
  #limitedTypes: Set<string> = new Set();
  #at = 0 as Instant;
  /** The holds as last seen, and `Holds.changes` then. */
  readonly #seenHolds = new Map<string, HoldRow>();
  #holdChanges: number;
  readonly #isLimited = (agentType: string | undefined) =>
    agentType !== undefined && this.#limitedTypes.has(agentType);

  constructor(state: SwarmState) {
    this.#state = state;
    this.#policy = state.policy;
    this.#grants = state.grants;
    for (const hold of holdsIn(state)) this.#seenHolds.set(keyOf(hold), hold);
    this.#holdChanges = state.holds.changes;
    for (const id of state.agentById.keys()) this.touch(id);
  }

  /** Reads the agent's row after a change. A hold that is placed and ended between two rounds is seen here: the agent
   *  may have been read in between. */
  touch(agent: AgentId): void {
    if (this.#holdChanges !== this.#state.holds.changes) this.#lookAtHolds();
    this.#renew(this.#sightingById.get(agent) ?? this.#sight(agent));
  }

  /** Begins a round: applies changes of time and settings since the last round. */
  begin(at: Instant): void {
    this.#at = at;
    if (this.#policy !== this.#state.policy || this.#grants !== this.#state.grants) this.#beginAnew();
    if (this.#state.ratesByType.size > 0 || this.#limitedTypes.size > 0) this.#lookAtRates();
    if (this.#holdChanges !== this.#state.holds.changes) this.#lookAtHolds();
    for (const pool of this.#poolByKey.values()) pool.begin(at);
    if (this.#backlogged.size > 0 && this.#policy.lambda !== 0) this.#compareBacklogs();
    for (const pool of this.#poolByKey.values()) pool.settle();
  }

  /** The agents for a queue's tasks. */
  poolOf(queue: Pick<TaskQueue, "key" | "kind" | "role" | "needs">): Pool {
    return this.#poolByKey.get(queue.key) ?? this.#makePool(queue.key, queue);
  }

  /** The agents for tasks of a kind, role and needs, of one type and of the permitted groups if named. */
  poolFor(calling: Calling): Pool {
    const { kind, role, needs, agentType, access } = calling;
    const ofAny = queueKey(kind, role, needs);
    // Names hold no line ends, and JSON escapes those of needs: no queue has this key.
    const ofType = agentType === undefined ? ofAny : `${ofAny}\n${agentType}`;
    const key = access === undefined ? ofType : `${ofType}\n\n${access.key}`;
    return this.#poolByKey.get(key) ?? this.#makePool(key, calling);
  }

  /** Notes an applied assignment, which outdates the agent's candidates. */
  assigned(contender: Contender, hasFilled: boolean): void {
    contender.version += 1;
    if (hasBacklog(this.#state, contender.agent)) this.#backlogged.add(contender);
    this.#closeIfUsedUp(contender.agent.agentType);
    if (this.#holdChanges !== this.#state.holds.changes) this.#lookAtHolds();
    if (!hasFilled && contender.agent.suspensionByKind.size === 0) return;
    for (const candidate of contender.candidates) candidate.pool.update(candidate);
  }

  /** Closes a type whose rate the last reservation used up: agents of the type get nothing more in this round. */
  #closeIfUsedUp(type: string | undefined): void {
    if (type === undefined || this.#limitedTypes.has(type) || !rateGate(this.#state, type, this.#at)) return;
    this.#limitedTypes.add(type);
    for (const { contender } of this.#sightingById.values())
      if (contender?.agent.agentType === type)
        for (const candidate of contender.candidates) candidate.pool.update(candidate);
  }

  #makePool(key: string, { kind, role, needs, agentType, access }: Calling): Pool {
    const inUse = this.#state.queueByKey.size * (2 + this.#grants.accesses);
    if (this.#poolByKey.size >= inUse + limits.idlePoolsMax) this.#dropIdlePools();
    const ofAnyProject = access === undefined ? undefined : this.poolFor({ kind, role, needs });
    const pool = new Pool({
      state: this.#state,
      policy: this.#policy,
      kind,
      role,
      needs,
      agentType,
      access,
      ofAnyProject,
      census: this.#census,
      liveOf: () => this.#liveOf(kind),
      isLimited: this.#isLimited,
    });
    pool.begin(this.#at);
    this.#poolByKey.set(key, pool);
    const ofKind = this.#poolsByKind.get(kind);
    if (ofKind === undefined) this.#poolsByKind.set(kind, [pool]);
    else ofKind.push(pool);
    for (const { id, labels, group } of this.#state.onlineByKind.get(kind)?.values() ?? []) {
      if (!meetsNeeds(labels, needs) || access?.admits(group) === false) continue;
      const contender = this.#sightingById.get(id)?.contender;
      if (contender !== undefined) pool.admit(contender);
    }
    pool.settle();
    return pool;
  }

  /** Online agents of the kind that do not drain. Counted again after agents came or went, and where needs ask. */
  #liveOf(kind: Kind): number {
    const known = this.#liveByKind.get(kind);
    if (known !== undefined) return known;
    let live = 0;
    for (const agent of this.#state.onlineByKind.get(kind)?.values() ?? []) if (isLive(agent)) live += 1;
    this.#liveByKind.set(kind, live);
    return live;
  }

  /** Drops pools of queues without tasks, and pools of types. */
  #dropIdlePools(): void {
    for (const [key, pool] of this.#poolByKey) {
      if (this.#state.queueByKey.has(key)) continue;
      this.#poolByKey.delete(key);
      const ofKind = this.#poolsByKind.get(pool.kind) ?? [];
      ofKind.splice(ofKind.indexOf(pool), 1);
      if (ofKind.length === 0) this.#poolsByKind.delete(pool.kind);
      pool.disband();
    }
  }

  #beginAnew(): void {
    this.#policy = this.#state.policy;
    this.#grants = this.#state.grants;
    this.#poolByKey.clear();
    this.#poolsByKind.clear();
    this.#backlogged.clear();
    for (const sighting of this.#sightingById.values()) {
      sighting.contender = undefined;
      this.#renew(sighting);
    }
  }

  #sight(id: AgentId): Sighting {
    const sighting: Sighting = { id, status: undefined, contender: undefined };
    this.#sightingById.set(id, sighting);
    return sighting;
  }

  #renew(sighting: Sighting): void {
    const agent = this.#state.agentById.get(sighting.id);
    this.#count(sighting, agent === undefined ? undefined : statusOf(agent));
    const known = sighting.contender;
    const isSame =
      known !== undefined && known.agent === agent && known.kinds === agent.kinds && agent.online;
    if (known !== undefined && !isSame) this.#dismiss(known);
    if (!isSame && this.#liveByKind.size > 0) this.#liveByKind.clear();
    if (agent === undefined) this.#sightingById.delete(sighting.id);
    if (agent?.online !== true) {
      sighting.contender = undefined;
      return;
    }
    const contender = isSame ? known : new Contender(agent);
    sighting.contender = contender;
    contender.version += 1;
    if (hasBacklog(this.#state, agent)) this.#backlogged.add(contender);
    else if (this.#backlogged.size > 0 && this.#backlogged.delete(contender)) contender.backlog = 0;
    if (isSame) for (const candidate of contender.candidates) candidate.pool.renew(candidate);
    else this.#admit(contender);
  }

  #admit(contender: Contender): void {
    const isVersatile = contender.kinds.size > this.#poolsByKind.size;
    for (const kind of isVersatile ? this.#poolsByKind.keys() : contender.kinds) {
      if (!contender.kinds.has(kind)) continue;
      for (const pool of this.#poolsByKind.get(kind) ?? []) pool.admit(contender);
    }
  }

  #dismiss(contender: Contender): void {
    this.#backlogged.delete(contender);
    for (const candidate of contender.candidates) candidate.pool.dismiss(candidate);
  }

  #count(sighting: Sighting, status: Status | undefined): void {
    if (sighting.status === status) return;
    if (sighting.status !== undefined) this.#census[sighting.status] -= 1;
    if (status !== undefined) this.#census[status] += 1;
    sighting.status = status;
    this.#liveByKind.clear();
    for (const pool of this.#poolByKey.values()) pool.censusChanged();
  }

  /** Reads the agents of types whose rate closed or opened since. */
  #lookAtRates(): void {
    const limited = new Set<string>();
    for (const type of this.#state.ratesByType.keys())
      if (rateGate(this.#state, type, this.#at)) limited.add(type);
    const isSame = limited.size === this.#limitedTypes.size && [...limited].every(this.#isLimited);
    if (isSame) return;
    this.#limitedTypes = limited;
    for (const sighting of this.#sightingById.values())
      if (sighting.contender?.agent.agentType !== undefined) this.#renew(sighting);
  }

  /**
   * Reads the agents at holds that changed: placed, elapsed, ended, or with a probe that began or ended. Also where a
   * hold is as before: agents that were read in between saw it otherwise. A hold placed anew after the last look is
   * another row: agents of the ended hold are read as well.
   */
  #lookAtHolds(): void {
    const since = this.#holdChanges;
    this.#holdChanges = this.#state.holds.changes;
    const changed: HoldRow[] = [];
    for (const [key, hold] of this.#seenHolds) {
      if (this.#state.holds[hold.on].get(hold.name) === hold) continue;
      this.#seenHolds.delete(key);
      changed.push(hold);
    }
    for (const hold of holdsIn(this.#state)) {
      if (hold.changedAt <= since) continue;
      this.#seenHolds.set(keyOf(hold), hold);
      changed.push(hold);
    }
    this.#renewHeld(changed);
  }

  #renewHeld(holds: readonly HoldRow[]): void {
    const types = new Set<string>();
    for (const { on, name, users } of holds) {
      if (on === "type") types.add(name);
      const agents = on === "agent" ? [name as AgentId] : users.keys();
      for (const agent of agents) {
        const sighting = this.#sightingById.get(agent);
        if (sighting !== undefined) this.#renew(sighting);
      }
    }
    if (types.size === 0) return;
    for (const sighting of this.#sightingById.values())
      if (types.has(sighting.contender?.agent.agentType ?? "")) this.#renew(sighting);
  }

  #compareBacklogs(): void {
    const queueByContender = new Map<Contender, Queue>();
    for (const contender of this.#backlogged)
      queueByContender.set(contender, backlogOf(this.#state, contender.agent));
    const maxima = maximaOf(queueByContender.values());
    for (const [contender, queue] of queueByContender) {
      const backlog = loadOf(queue, maxima, this.#policy.alpha);
      if (backlog === contender.backlog) continue;
      contender.backlog = backlog;
      contender.version += 1;
      for (const candidate of contender.candidates) candidate.pool.renew(candidate);
    }
  }
}

function* holdsIn({ holds }: SwarmState): Generator<HoldRow> {
  for (const on of holdScopes) yield* holds[on].values();
}

function keyOf({ on, name }: HoldRow): string {
  return `${on} ${name}`;
}

function statusOf(agent: AgentRow): Status | undefined {
  if (!runsTasks(agent)) return undefined;
  if (!agent.online) return "offline";
  return agent.draining ? "draining" : "live";
}
