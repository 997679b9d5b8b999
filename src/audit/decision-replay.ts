// Decides a whole journal once more, to prove that its decisions follow from its inputs. Each batch goes through the
// present step, and its decisions are compared with the recorded decisions. Not here: one batch (core/reproduction.ts),
// the proof that the journal is as it was written (audit/verifying/verify.ts), which runs along.

import type { Clock } from "../clock.ts";
import { Reproduction } from "../core/reproduction.ts";
import { decodeState } from "../core/snapshot/decode.ts";
import { encodeState } from "../core/snapshot/encode.ts";
import { JournalDamagedError, messageOf } from "../errors.ts";
import type { JournalReader } from "../journal/journal.ts";
import type { Batch } from "../journal/records.ts";
import type { Event } from "../state/event.ts";
import { emptyState, type SwarmState } from "../state/state.ts";
import { type Difference, differencesOf } from "./verifying/difference.ts";
import { type Fault, type Gap, type Verification, verifyJournal } from "./verifying/verify.ts";

/** The first decision that the present step does not repeat. */
export interface DecisionDifference {
  readonly idx: number;
  /** Journal time, ms since 1970. */
  readonly at: number;
  /** Place of the event in the batch, from 0. */
  readonly place: number;
  /** Undefined if the step decides an event that was not recorded. */
  readonly recorded?: Event;
  /** Undefined if the step does not decide the recorded event. */
  readonly decided?: Event;
  /** Between the two events, if both exist. */
  readonly differences?: readonly Difference[];
  /** Why the step could not decide the batch at all. */
  readonly error?: string;
}

export interface DecisionReplay {
  /** Identity of the journal. */
  readonly journal: string;
  /** The first and the last batch that were decided again. */
  readonly firstIdx: number;
  readonly lastIdx: number;
  readonly batches: number;
  readonly events: number;
  /** Commands found in the batches. */
  readonly inputs: number;
  readonly assignments: number;
  /** Grants of slots. */
  readonly grants: number;
  /** Batches in which the leader assigned nothing although it could: its storage was nearly full. */
  readonly withheld: number;
  /** Times that the state was taken from a base, because the batches before are not kept. */
  readonly basesTaken: number;
  /** Batches that the journal lost: each later base replaces the state. */
  readonly gaps: readonly Gap[];
  /** Undefined if every decision was repeated exactly. */
  readonly difference?: DecisionDifference;
}

export interface DecisionReplayDeps {
  readonly journal: JournalReader;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
  /** Called after each slice of work. */
  readonly onProgress?: (progress: { readonly idx: number }) => void;
}

/** @returns undefined if the journal holds no batch
 *  @throws JournalDamagedError if the journal is not as it was written; UnreachableError; the signal's reason */
export async function replayDecisions(deps: DecisionReplayDeps): Promise<DecisionReplay | undefined> {
  const replay = new JournalReproduction();
  const verified = await verifyJournal({
    ...deps,
    onBase: (state) => replay.startFrom(state),
    onBatch: (batch) => replay.take(batch),
  });
  requireWhole(verified);
  if (verified === undefined || verified.batches === 0) return undefined;
  const { journal, basesTaken, gaps } = verified;
  return { journal, basesTaken, gaps, ...replay.report };
}

/** @throws JournalDamagedError that names the first bad batch */
export function requireWhole(verified: Verification | undefined): void {
  if (verified?.fault !== undefined) throw new JournalDamagedError(faultText(verified.fault));
}

function faultText({ text }: Fault): string {
  return `${text}; nothing after it can be replayed. \`waggle verify\` says more`;
}

/** A state of its own: changes of the copy do not reach the original. */
export function copyOf(state: Readonly<SwarmState>): SwarmState {
  return decodeState(encodeState(state));
}

class JournalReproduction {
  #reproduction = new Reproduction(emptyState());
  #firstIdx = 0;
  #lastIdx = 0;
  #batches = 0;
  #events = 0;
  #inputs = 0;
  #assignments = 0;
  #grants = 0;
  #withheld = 0;
  #difference: DecisionDifference | undefined;

  startFrom(state: Readonly<SwarmState>): void {
    if (this.#difference === undefined) this.#reproduction = new Reproduction(copyOf(state));
  }

  take(batch: Batch): void {
    if (this.#difference !== undefined) return;
    this.#difference = this.#differenceIn(batch);
    if (this.#difference !== undefined) return;
    if (this.#firstIdx === 0) this.#firstIdx = batch.idx;
    this.#lastIdx = batch.idx;
    this.#batches += 1;
    this.#events += batch.events.length;
    for (const { type } of batch.events) {
      if (type === "TaskAssigned") this.#assignments += 1;
      if (type === "SlotGranted") this.#grants += 1;
    }
  }

  get report(): Omit<DecisionReplay, "journal" | "basesTaken" | "gaps"> {
    return {
      firstIdx: this.#firstIdx,
      lastIdx: this.#lastIdx,
      batches: this.#batches,
      events: this.#events,
      inputs: this.#inputs,
      assignments: this.#assignments,
      grants: this.#grants,
      withheld: this.#withheld,
      ...(this.#difference === undefined ? {} : { difference: this.#difference }),
    };
  }

  #differenceIn(batch: Batch): DecisionDifference | undefined {
    const { idx, at } = batch;
    try {
      const reproduced = this.#reproduction.take(batch);
      if (reproduced.kind === "same") {
        this.#inputs += reproduced.inputs.length;
        this.#withheld += reproduced.isWithheld ? 1 : 0;
        return undefined;
      }
      const { place, recorded, decided } = reproduced;
      const areBoth = recorded !== undefined && decided !== undefined;
      return {
        idx,
        at,
        place,
        ...(recorded === undefined ? {} : { recorded }),
        ...(decided === undefined ? {} : { decided }),
        ...(areBoth ? { differences: differencesOf(recorded, decided) } : {}),
      };
    } catch (cause) {
      return { idx, at, place: 0, error: messageOf(cause) };
    }
  }
}
