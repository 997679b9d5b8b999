// Acquiring, touching and releasing slots, and reconciling an agent's view of slots. A handle stands for one slot lease
// for ever: a repeated request takes effect once, and the reply gives the present state.

import {
  type AgentId,
  type Incarnation,
  type Instant,
  NO_GROUP,
  type ResourceName,
  type SlotHandle,
} from "../ids.ts";
import { limits } from "../limits.ts";
import { neverFits, rateBelow, type TokenRequest } from "../scheduling/gates.ts";
import { holdOfEndedSlots, holdsOfRefusedSlots } from "../scheduling/hold.ts";
import { isVacant } from "../scheduling/slot-planner.ts";
import type {
  Event,
  EventOf,
  SlotLease,
  SlotReleaseReason,
  SlotUse,
  SlotWaitEndReason,
} from "../state/event.ts";
import { chargeable, type Grant } from "../state/grant.ts";
import type { SlotRefusal } from "../state/hold.ts";
import { nearMisses } from "../state/near-miss.ts";
import { isCountedAt } from "../state/refusal-rows.ts";
import { slotLeaseKey } from "../state/slot-key.ts";
import { findSlotLease, mentionsOf, needsOf, slotLeasesOf, slotTermsOf } from "../state/slot-rows.ts";
import { ratesOf, tokensAtRelease, tokensLate } from "../state/slot-tokens.ts";
import type { ResourceRow, SlotLeaseRow, SwarmState } from "../state/state.ts";
import { hasRoomForProject } from "../state/task-rows.ts";
import { isDeclared, rejectionBy } from "./admission.ts";
import type { Command, CommandOf, ListedSlots, Reply, SlotCorrections } from "./command.ts";
import { endsOfOwnProbe, endsOfProbedLease, slotRefusalAt } from "./decide-hold.ts";
import { answered, type Decision } from "./decision.ts";
import { grantOf, refusalOfSlots } from "./grant-rules.ts";
import { holdInVain } from "./wait-in-vain.ts";

type AcquireSlots = Extract<Command, { type: "AcquireSlots" }>;

export function decideAcquire(state: SwarmState, command: AcquireSlots, at: Instant): Decision {
  const { agent, incarnation, handle } = command;
  if (!isAlive(state, agent, incarnation)) return answered({ kind: "session-over", agent });
  const needs = needsOf(command.resources);
  const known = asBefore(state, command, needs);
  if (known !== undefined) return answered(known);
  const refusal =
    beyondGrant(state, command, needs) ??
    refusalOf(state, command, needs) ??
    refusalOfTokens(state, command, needs, at);
  if (refusal !== undefined) return answered(refusal);
  const slotLease = slotLeaseOf(command, needs);
  const opened = openedBy(state, needs);
  if (isVacant(state, needs, tokenRequestOf(state, command, needs), at)) {
    const receipt = { by: "free", waiting: 0, waitedMs: 0 } as const;
    return {
      events: [...opened, { type: "SlotGranted", ...slotLease, receipt }],
      reply: { kind: "slot-granted", handle },
      grantsLast: true,
    };
  }
  const { timeoutMs } = command;
  const deadline = timeoutMs === undefined ? {} : { deadline: (at + timeoutMs) as Instant };
  const hold = holdInVain(state, { ...command, ...deadline, needs }, at);
  if (hold !== undefined)
    return answered({ kind: "slot-on-hold", resource: hold.name as ResourceName, until: hold.until });
  const crowded = rowsOf(state, needs).find((row) => row.waiting.size >= row.settings.maxWaiters);
  if (crowded !== undefined) {
    const { resource, settings } = crowded;
    const { maxWaiters } = settings;
    return answered({
      kind: "too-many-waiters",
      resource,
      maxWaiters,
      retryAfterMs: limits.retryAfterMs,
    });
  }
  const ends = endsOfOwnProbe(state, command, needs.keys());
  return {
    events: [...opened, { type: "SlotAwaited", ...slotLease, ...deadline }, ...ends],
    reply: { kind: "slot-awaited", handle },
  };
}

/** Journals a touch only if it moves the end of the idle time noticeably. */
export function decideTouch(
  state: SwarmState,
  { agent, incarnation, handle }: Extract<Command, { type: "TouchSlots" }>,
  at: Instant,
): Decision {
  const slotLease = findSlotLease(state, agent, handle);
  if (slotLease === undefined) return answered(endingOf(state, agent, handle));
  if (slotLease.incarnation !== incarnation) return answered({ kind: "session-over", agent });
  if (slotLease.state === "waiting") return answered({ kind: "slot-awaited", handle });
  const { idleTimeoutMs, idleTimer } = slotLease;
  const movesMs = idleTimeoutMs === undefined ? 0 : at + idleTimeoutMs - (idleTimer?.dueAt ?? 0);
  const isNews = idleTimeoutMs !== undefined && movesMs > idleTimeoutMs * limits.slotTouchShare;
  const event: Event = { type: "SlotTouched", agent, incarnation, handle };
  return { events: isNews ? [event] : [], reply: { kind: "slot-granted", handle } };
}

/** Takes back slots that were not touched within their idle time. */
export function decideIdle(slotLease: SlotLeaseRow): Event[] {
  return [released(slotLease, "idle")];
}

export function decideRelease(
  state: SwarmState,
  { agent, incarnation, handle, usage, refusal: said, unanswered }: CommandOf<"ReleaseSlots">,
  at: Instant,
): Decision {
  const slotLease = findSlotLease(state, agent, handle);
  const refusal = said && slotRefusalAt(said, at);
  if (slotLease === undefined) {
    const ended = { agent, handle };
    const events = [...refusedLate(state, ended, refusal, at), ...chargedLate(state, { ...ended, usage })];
    return { events, reply: endingOf(state, agent, handle) };
  }
  if (slotLease.incarnation !== incarnation) return answered({ kind: "session-over", agent });
  const events =
    slotLease.state === "held"
      ? releasedBy(state, slotLease, { usage, refusal, unanswered }, at)
      : [waitsEnded([slotLease], "aborted")];
  return { events, reply: { kind: "slot-released", handle, was: slotLease.state } };
}

interface ReleaseReport {
  readonly usage: SlotUse | undefined;
  readonly refusal: SlotRefusal | undefined;
  readonly unanswered: true | undefined;
}

/** The holds first: nobody is granted slots of a refused resource that the release frees. */
function releasedBy(
  state: SwarmState,
  slotLease: SlotLeaseRow,
  { usage, refusal, unanswered }: ReleaseReport,
  at: Instant,
): Event[] {
  const holds = refusal === undefined ? [] : holdsOfRefusedSlots(state, slotLease, refusal, at);
  const refused = new Set(holds.map(({ name }) => name));
  const grant = grantOf(state, state.agentById.get(slotLease.agent));
  const release = released(slotLease, "released", usage, grant);
  if (refusal === undefined && unanswered === true) return [{ ...release, unanswered }];
  return [
    ...holds,
    refusal === undefined ? release : { ...release, refusal },
    ...endsOfProbedLease(state, slotLease, refused),
  ];
}

/** How a slot lease ended, or that it is unknown. */
function endingOf(state: SwarmState, agent: AgentId, handle: SlotHandle): Reply {
  const reason = state.endedSlotByKey.get(slotLeaseKey({ agent, handle }));
  return reason === undefined ? { kind: "unknown-handle", handle } : { kind: "slot-ended", handle, reason };
}

interface EndedLease {
  readonly agent: AgentId;
  readonly handle: SlotHandle;
}

const waitEndings: ReadonlySet<string> = new Set(["aborted", "timed-out", "above-capacity"]);

/** What a refusal leads to that comes after the end of its slot lease. The report names the resource, because the state
 *  no longer knows it. */
function refusedLate(
  state: SwarmState,
  { agent, handle }: EndedLease,
  refusal: SlotRefusal | undefined,
  at: Instant,
): readonly Event[] {
  const { resource, until, reason } = refusal ?? {};
  const ending = state.endedSlotByKey.get(slotLeaseKey({ agent, handle }));
  if (resource === undefined || ending === undefined) return [];
  if (waitEndings.has(ending) || !state.resourceByName.has(resource)) return [];
  const group = state.agentById.get(agent)?.group ?? NO_GROUP;
  const wanted = { resources: [resource], project: undefined, tokens: 0 };
  if (refusalOfSlots(state, group, wanted) !== undefined) return [];
  const holds = holdOfEndedSlots(state, { agent, handle }, { ...refusal, resource }, at);
  const isCounted =
    until === undefined && isCountedAt(state, { on: "resource", name: resource }, { agent, handle });
  if (holds.length > 0 || !isCounted) return holds;
  return [{ type: "SlotRefused", agent, handle, resource, ...(reason === undefined ? {} : { reason }) }];
}

/** The charge of a report about lost slots. */
function chargedLate(
  state: SwarmState,
  { agent, handle, usage }: EndedLease & { readonly usage: SlotUse | undefined },
): Event[] {
  const uncharged = state.unchargedSlots.get(slotLeaseKey({ agent, handle }));
  const grant = grantOf(state, state.agentById.get(agent));
  const tokens = uncharged === undefined ? 0 : chargeable(grant, tokensLate(uncharged, usage));
  if (uncharged === undefined || tokens === 0) return [];
  const { project } = uncharged;
  return [
    {
      type: "SlotCharged",
      agent,
      handle,
      ...(project === undefined ? {} : { project }),
      tokens,
      ...(usage === undefined ? {} : { usage }),
    },
  ];
}

/** Ends a wait at the time-out. */
export function decideAcquireTimeout(slotLease: SlotLeaseRow): Event[] {
  return [waitsEnded([slotLease], "timed-out")];
}

/** Ends waits for more slots of a resource than it has in total: at most `endsMax` events. */
export function endWaitsAbove(
  row: ResourceRow,
  slots: number,
  endsMax: number,
): { readonly events: readonly Event[]; readonly isComplete: boolean } {
  const above = [...row.waiting.values()].filter(({ needs }) => (needs.get(row.resource) ?? 0) > slots);
  const events = above.slice(0, endsMax).map((slotLease) => waitsEnded([slotLease], "above-capacity"));
  return { events, isComplete: above.length <= endsMax };
}

/**
 * Ends the slot leases of an ended session, with at most `releasesMax` releases. Waits end first, and all at once: no
 * released slot may be granted to the same session.
 */
export function endSlotsOf(
  state: SwarmState,
  agent: AgentId,
  releasesMax: number,
): { readonly events: readonly Event[]; readonly isComplete: boolean } {
  const slotLeases = slotLeasesOf(state, agent);
  const held = slotLeases.filter((slotLease) => slotLease.state === "held");
  const events = ended(slotLeases, held.slice(0, releasesMax), "agent-gone");
  return { events, isComplete: held.length <= releasesMax };
}

/**
 * Reconciles the journal with an agent's lists, and returns corrections where the agent is wrong. The agent has let go
 * of every handle listed neither as held nor as waiting: an agent lists a handle from before the request until the
 * ending is known. A young request is left alone, because it may have overtaken a heartbeat of another thread.
 */
export function reconcileSlots(
  state: SwarmState,
  agent: AgentId,
  { held, waiting }: ListedSlots,
  at: Instant,
): { readonly events: readonly Event[]; readonly corrections: SlotCorrections | undefined } {
  const listed = new Set([...held, ...waiting]);
  const unlisted = slotLeasesOf(state, agent).filter(
    ({ handle, requestedAt }) => !listed.has(handle) && at - requestedAt >= limits.slotUnlistedMs,
  );
  const lost = unlisted
    .filter((slotLease) => slotLease.state === "held")
    .slice(0, limits.closuresPerCommandMax);
  const stateOf = (handle: SlotHandle) => findSlotLease(state, agent, handle)?.state;
  const corrections: SlotCorrections = {
    granted: waiting.filter((handle) => stateOf(handle) === "held"),
    ended: waiting
      .filter((handle) => stateOf(handle) === undefined)
      .map((handle) => ({
        handle,
        reason: state.endedSlotByKey.get(slotLeaseKey({ agent, handle })) ?? "unknown",
      })),
    revoked: held.filter((handle) => stateOf(handle) !== "held"),
  };
  const isRight = Object.values(corrections).every((list: readonly unknown[]) => list.length === 0);
  return { events: ended(unlisted, lost, "lost"), corrections: isRight ? undefined : corrections };
}

function isAlive(state: SwarmState, agent: AgentId, incarnation: Incarnation): boolean {
  const row = state.agentById.get(agent);
  return row?.online === true && row.incarnation === incarnation;
}

const sameTerms = ["holder", "as", "label", "project", "user", "idleTimeoutMs"] as const;

/** The present state of a handle requested before. */
function asBefore(
  state: SwarmState,
  command: AcquireSlots,
  needs: ReadonlyMap<ResourceName, number>,
): Reply | undefined {
  const { agent, handle, weightThousandths } = command;
  const slotLease = findSlotLease(state, agent, handle);
  if (slotLease !== undefined) {
    const isSame =
      slotLease.weightThousandths === weightThousandths &&
      slotLease.tokens === (command.tokens ?? 0) &&
      sameTerms.every((name) => slotLease[name] === command[name]) &&
      isSameNeed(slotLease.needs, needs);
    if (!isSame) return { kind: "handle-in-use", handle };
    return { kind: slotLease.state === "held" ? "slot-granted" : "slot-awaited", handle };
  }
  const reason = state.endedSlotByKey.get(slotLeaseKey({ agent, handle }));
  return reason === undefined ? undefined : { kind: "slot-ended", handle, reason };
}

function beyondGrant(
  state: SwarmState,
  { agent, project, tokens = 0 }: AcquireSlots,
  needs: ReadonlyMap<ResourceName, number>,
): Reply | undefined {
  const group = state.agentById.get(agent)?.group ?? NO_GROUP;
  return refusalOfSlots(state, group, { resources: needs.keys(), project, tokens });
}

function refusalOf(
  state: SwarmState,
  { agent, holder }: AcquireSlots,
  needs: ReadonlyMap<ResourceName, number>,
): Reply | undefined {
  for (const [resource, wanted] of needs) {
    const row = state.resourceByName.get(resource);
    if (row === undefined && state.policy.resources === "declared") {
      const near = nearMisses(resource, state.resourceByName.keys());
      return { kind: "unknown-resource", resource, nearMisses: near };
    }
    const slots = row?.settings.slots ?? state.policy.slotsDefault;
    if (wanted > slots) return { kind: "above-capacity", resource, wanted, slots };
  }
  const opened = openedBy(state, needs).at(-1);
  const { resourcesMax } = limits;
  if (opened !== undefined && state.resourceByName.size + needs.size > resourcesMax)
    return { kind: "table-full", of: "resources", name: opened.resource, max: resourcesMax };
  const own = slotLeasesOf(state, agent);
  if (own.length >= limits.slotLeasesPerAgentMax)
    return { kind: "too-many-slot-leases", retryAfterMs: limits.retryAfterMs };
  return disorder(own, needs, holder);
}

/** The resources that a request makes, where the policy opens unknown resources. */
function openedBy(
  state: SwarmState,
  needs: ReadonlyMap<ResourceName, number>,
): EventOf<"ResourceConfigured">[] {
  const settings = { slots: state.policy.slotsDefault, maxWaiters: limits.waitersPerResourceMax };
  return [...needs.keys()]
    .filter((resource) => !state.resourceByName.has(resource))
    .map((resource) => ({ type: "ResourceConfigured", resource, settings }));
}

/** Why the project or the tokens of a request are refused, as those of a task. */
function refusalOfTokens(
  state: SwarmState,
  request: AcquireSlots,
  needs: ReadonlyMap<ResourceName, number>,
  at: Instant,
): Reply | undefined {
  const { project, tokens = 0 } = request;
  const row = project === undefined ? undefined : state.projectById.get(project);
  if (project !== undefined) {
    const { projectsMax: max } = limits;
    if (!isDeclared(state, row)) return { kind: "unknown-project", project };
    if (!hasRoomForProject(state, project)) return { kind: "table-full", of: "projects", name: project, max };
  }
  if (tokens === 0) return undefined;
  const tooSmall = neverFits(state, row, tokens);
  if (tooSmall !== undefined) return { kind: "over-budget", tokens, source: "said", ...tooSmall };
  const below = rateBelow(state, tokenRequestOf(state, request, needs));
  if (below !== undefined) {
    const { agentType, settings } = below;
    return { kind: "over-rate", agentType, tokens, window: settings.window, tokensMax: settings.tokensMax };
  }
  return rejectionBy(state, { project, row, tokens, source: "said" }, at);
}

function tokenRequestOf(
  state: SwarmState,
  { agent, project, tokens = 0 }: AcquireSlots,
  needs: ReadonlyMap<ResourceName, number>,
): TokenRequest {
  const agentType = state.agentById.get(agent)?.agentType;
  return { tokens, project, rates: ratesOf({ agentType, needs }) };
}

/**
 * Prevents rings of waits. A holder that waits for more slots could be part of a ring; acquiring in name order excludes
 * rings. A holder may not wait for a resource that the same holder has or waits for. An agent may: several holders of
 * one agent usually share a quota.
 */
function disorder(
  own: readonly SlotLeaseRow[],
  needs: ReadonlyMap<ResourceName, number>,
  holder: string | undefined,
): Reply | undefined {
  const [first] = needs.keys();
  if (first === undefined) return undefined;
  for (const slotLease of own) {
    if (slotLease.holder !== holder || (slotLease.state === "waiting" && holder === undefined)) continue;
    const last = [...slotLease.needs.keys()].at(-1);
    if (last === undefined || last < first || (holder === undefined && last === first)) continue;
    return { kind: "out-of-order", resource: first, held: last };
  }
  return undefined;
}

function slotLeaseOf(
  { agent, incarnation, handle, weightThousandths, ...terms }: AcquireSlots,
  needs: ReadonlyMap<ResourceName, number>,
): SlotLease {
  return {
    agent,
    incarnation,
    handle,
    resources: mentionsOf(needs),
    weightThousandths,
    ...slotTermsOf(terms),
  };
}

function ended(
  slotLeases: readonly SlotLeaseRow[],
  held: readonly SlotLeaseRow[],
  reason: SlotReleaseReason & SlotWaitEndReason,
): Event[] {
  const waiting = slotLeases.filter((slotLease) => slotLease.state === "waiting");
  const waits = waiting.length === 0 ? [] : [waitsEnded(waiting, reason)];
  return [...waits, ...held.map((slotLease) => released(slotLease, reason))];
}

function released(
  slotLease: SlotLeaseRow,
  reason: SlotReleaseReason,
  usage?: SlotUse,
  grant?: Grant,
): EventOf<"SlotReleased"> {
  const { agent, incarnation, handle, needs, project } = slotLease;
  const tokens = chargeable(grant, tokensAtRelease(slotLease, reason, usage));
  return {
    type: "SlotReleased",
    agent,
    incarnation,
    handle,
    resources: mentionsOf(needs),
    reason,
    ...(project === undefined ? {} : { project }),
    ...(tokens === 0 ? {} : { tokens }),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** @param slotLeases slot leases of one agent, at least one */
function waitsEnded(slotLeases: readonly SlotLeaseRow[], reason: SlotWaitEndReason): Event {
  const [{ agent, incarnation }] = slotLeases as readonly [SlotLeaseRow, ...SlotLeaseRow[]];
  return {
    type: "SlotWaitEnded",
    agent,
    incarnation,
    handles: slotLeases.map(({ handle }) => handle),
    reason,
  };
}

function rowsOf(state: SwarmState, needs: ReadonlyMap<ResourceName, number>): ResourceRow[] {
  return [...needs.keys()].flatMap((resource) => state.resourceByName.get(resource) ?? []);
}

function isSameNeed(a: ReadonlyMap<ResourceName, number>, b: ReadonlyMap<ResourceName, number>): boolean {
  return a.size === b.size && [...a].every(([resource, count]) => b.get(resource) === count);
}
