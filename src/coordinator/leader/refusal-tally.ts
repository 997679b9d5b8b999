// What was refused for want of room, summed up: one event a second and kind of refusal, so that refusals are on
// the record without filling it.

import type { Command } from "../../core/command.ts";
import { NO_PROJECT, type ProjectId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { RefusalReason } from "../../state/event.ts";

interface Tally {
  readonly project: ProjectId;
  readonly reason: RefusalReason;
  count: number;
}

export class RefusalTally {
  readonly #tallies = new Map<string, Tally>();
  #summarisedMs: number;

  /** @param now on the monotonic clock */
  constructor(now: number) {
    this.#summarisedMs = now;
  }

  /** Beyond `limits.projectsMax` different tallies, what belongs to further projects is counted under `_`. */
  add(project: ProjectId, reason: RefusalReason, count: number): void {
    const known = this.#tallies.get(keyOf(project, reason));
    const isFull = known === undefined && this.#tallies.size >= limits.projectsMax;
    const counted = isFull ? (NO_PROJECT as ProjectId) : project;
    const tally = known ??
      this.#tallies.get(keyOf(counted, reason)) ?? { project: counted, reason, count: 0 };
    tally.count += count;
    this.#tallies.set(keyOf(counted, reason), tally);
  }

  /** The summaries that are due, taken out. */
  take(now: number): Command[] {
    if (this.#tallies.size === 0 || now - this.#summarisedMs < limits.refusalSummaryMs) return [];
    this.#summarisedMs = now;
    const commands = [...this.#tallies.values()].map(
      (tally): Command => ({ type: "SummarizeRefusals", ...tally }),
    );
    this.#tallies.clear();
    return commands;
  }
}

function keyOf(project: ProjectId, reason: RefusalReason): string {
  return `${project} ${reason}`;
}
