// The first row of a snapshot: its version, its position in the journal, and the values that a swarm has once.

import type { BatchIndex, Term } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { emptyState, type SwarmState, type TermStart } from "../../state/state.ts";
import { type Fields, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import { readPolicy } from "./settings.ts";
import { endedCountFields, ledgerFields, readEndedCounts, readLedger } from "./values.ts";

/** Grows when a reader of the previous version could not restore the same state; older versions are not read. */
export const snapshotVersion = 13;

export function headerRow(state: SwarmState): Row {
  const { term, leader, leaderTimeoutMs, idx, auditFirstIdx, at, horizonAt, virtualTime } = state;
  const { tick, submissions, assignments, joins, orders, timersEver, slotLeases } = state;
  const ever = { tick, submissions, assignments, joins, orders, timersEver, slotLeases };
  const ended = endedCountFields(state.counts);
  const { policy, isPaused } = state;
  const ledger = ledgerFields(state.ledger);
  const version = snapshotVersion;
  const termStarts = state.termStarts.map((start) => [start.term, start.idx, start.opened]);
  const office = { term, termStarts, leader, leaderTimeoutMs };
  return [
    "snapshot",
    {
      version,
      ...office,
      idx,
      auditFirstIdx,
      at,
      horizonAt,
      ever,
      virtualTime,
      isPaused,
      policy,
      ended,
      ledger,
    },
  ];
}

/** @returns a state with empty maps */
export function readHeader(fields: Fields): SwarmState {
  const version = fields.whole("version", { min: 1 });
  if (version !== snapshotVersion)
    refuse(`is of version ${version}, which another waggle wrote; this one reads version ${snapshotVersion}`);
  const state = emptyState();
  state.term = fields.whole("term");
  state.leader = fields.text("leader", { mayBeEmpty: true });
  state.leaderTimeoutMs = fields.whole("leaderTimeoutMs");
  state.idx = fields.whole("idx");
  state.termStarts = readTermStarts(fields, state);
  state.auditFirstIdx = fields.whole("auditFirstIdx", { min: 1 });
  state.at = fields.whole("at");
  state.horizonAt = fields.whole("horizonAt", { min: -limits.rememberMsMax });
  state.virtualTime = fields.amount("virtualTime");
  state.isPaused = fields.flag("isPaused");
  state.policy = readPolicy(fields);
  fields.within("ever", (ever) => readEver(ever, state));
  fields.within("ended", (ended) => readEndedCounts(ended, state.counts));
  const terms = { usageMs: state.policy.guaranteeMs, budgetMs: state.policy.budget?.windowMs };
  fields.within("ledger", (ledger) => readLedger(ledger, state.ledger, terms));
  return state;
}

function readTermStarts(fields: Fields, { term, idx }: SwarmState): readonly TermStart[] {
  const starts: TermStart[] = [];
  for (const item of fields.list("termStarts")) {
    const [startTerm, startIdx, opened] = Array.isArray(item) && item.length === 3 ? (item as unknown[]) : [];
    const { term: lastTerm = 0, idx: lastIdx = 0 } = starts.at(-1) ?? {};
    const rises = isWholeAbove(startTerm, lastTerm) && isWholeAbove(startIdx, lastIdx);
    if (!rises || typeof opened !== "string" || opened.length > limits.openedCharacters)
      refuse("the starts of terms are not terms, batches and hashes in order", "snapshot.termStarts");
    starts.push({ term: startTerm as Term, idx: startIdx as BatchIndex, opened });
  }
  const isUpToNow = (starts.at(-1)?.term ?? 0) === term && (starts.at(-1)?.idx ?? 0) <= idx;
  if (!isUpToNow || starts.length > limits.rememberedTerms)
    refuse("the starts of terms do not end with the present term", "snapshot.termStarts");
  return starts;
}

function isWholeAbove(value: unknown, bound: number): boolean {
  return Number.isSafeInteger(value) && (value as number) > bound;
}

/** Counters since the start of the journal. */
function readEver(ever: Fields, state: SwarmState): void {
  state.tick = ever.whole("tick");
  state.submissions = ever.whole("submissions");
  state.assignments = ever.whole("assignments");
  state.joins = ever.whole("joins");
  state.orders = ever.whole("orders");
  state.timersEver = ever.whole("timersEver");
  state.slotLeases = ever.whole("slotLeases");
}
