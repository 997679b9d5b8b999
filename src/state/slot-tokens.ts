// Tokens of slot leases: reserved in the budgets and rates from the grant to the release, and settled then.
//
//   released                       the report's tokens; without a report, the reservation
//   idle                           the reservation: the holder went silent, and may have used it
//   agent gone, or lease lost      nothing, as for a lost attempt
//
// A report that comes after an end without one is charged once, less what was charged at that end. Not here: whether
// the tokens fit (scheduling/gates.ts), how ledgers change (budget-rows.ts).

import { assert } from "../assert.ts";
import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import { reserveTokens, returnTokens, spendTokens, type TokenAccount } from "./budget-rows.ts";
import type { EventOf, SlotReleaseReason, SlotUse } from "./event.ts";
import { slotLeaseKey } from "./slot-key.ts";
import type { SlotLeaseRow, SwarmState, UnchargedSlots } from "./state.ts";

/** The types whose rates count the tokens of a lease: its agent's, and those named as its resources. */
export function ratesOf({ agentType, needs }: Pick<SlotLeaseRow, "agentType" | "needs">): readonly string[] {
  const types = new Set<string>(needs.keys());
  if (agentType !== undefined) types.add(agentType);
  return [...types];
}

/** Whether tokens of the lease count anywhere. */
export function isCharged({ tokens, project }: Pick<SlotLeaseRow, "tokens" | "project">): boolean {
  return tokens > 0 || project !== undefined;
}

export function reserveOfSlots(state: SwarmState, lease: SlotLeaseRow, at: Instant): void {
  if (lease.tokens > 0) reserveTokens(state, accountOf(state, lease), lease.tokens, at);
}

/** The tokens charged at the end of a held lease. */
export function tokensAtRelease(
  { tokens }: Pick<SlotLeaseRow, "tokens">,
  reason: SlotReleaseReason,
  usage: SlotUse | undefined,
): number {
  if (reason === "lost" || reason === "agent-gone") return 0;
  return usage?.tokens ?? tokens;
}

/** @param used tokens, as `tokensAtRelease` */
export function settleSlots(
  state: SwarmState,
  lease: SlotLeaseRow,
  { reason, tokens: used = 0 }: Pick<EventOf<"SlotReleased">, "reason" | "tokens">,
  at: Instant,
): void {
  const account = accountOf(state, lease);
  if (lease.tokens > 0) returnTokens(state, account, lease.tokens);
  if (used > 0) spendTokens(state, account, used, at);
  if (reason !== "released" && isCharged(lease)) awaitCharge(state, lease, used, at);
}

/** The tokens that a report after the end of a lease still charges. */
export function tokensLate({ tokens, charged }: UnchargedSlots, usage: SlotUse | undefined): number {
  return Math.max(0, (usage?.tokens ?? tokens) - charged);
}

export function chargeSlots(state: SwarmState, event: EventOf<"SlotCharged">, at: Instant): void {
  const key = slotLeaseKey(event);
  const uncharged = state.unchargedSlots.get(key);
  assert(uncharged !== undefined, `slot lease ${key} is charged once`);
  state.unchargedSlots.delete(key);
  const { project, rates } = uncharged;
  const projectRow = project === undefined ? undefined : state.projectById.get(project);
  spendTokens(state, { projectRow, rates }, event.tokens, at);
}

function awaitCharge(state: SwarmState, lease: SlotLeaseRow, charged: number, at: Instant): void {
  const { unchargedSlots: uncharged } = state;
  for (let key = uncharged.oldestKey; key !== undefined; key = uncharged.oldestKey) {
    const hasRoom = uncharged.size < limits.unchargedAttemptsMax;
    if (hasRoom && (uncharged.oldest?.lostAt ?? 0) >= state.horizonAt) break;
    uncharged.delete(key);
  }
  const { project, tokens } = lease;
  uncharged.set(slotLeaseKey(lease), { project, rates: ratesOf(lease), tokens, charged, lostAt: at });
}

function accountOf(state: SwarmState, lease: SlotLeaseRow): TokenAccount {
  const { project } = lease;
  const projectRow = project === undefined ? undefined : state.projectById.get(project);
  return { projectRow, rates: ratesOf(lease) };
}
