// A leader's log with compaction. `pulse` does what compaction asks for, as a leader does between turns.

import { systemRandom } from "../../../src/clock.ts";
import { Compaction, type CompactionDeps } from "../../../src/coordinator/compacting/compaction.ts";
import type { MadeSegment } from "../../../src/coordinator/compacting/make-next-segment.ts";
import { type BaseMaker, baseMakerHere } from "../../../src/coordinator/compacting/make-next-segment.ts";
import type { Command } from "../../../src/core/command.ts";
import { batchIndex } from "../../../src/ids.ts";
import type { LiveSegment } from "../../../src/journal/replay.ts";
import { limits } from "../../../src/limits.ts";
import { silentLogger } from "../../support/swarm.ts";
import { type MemoryLedLog, SESSION } from "./led-log.ts";

export const SYNC_MS = 60_000;
export const nothing = { ageMs: 0, bytes: 0 };
export const everything = { ageMs: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };

export class CompactedLog {
  readonly log: MemoryLedLog;
  readonly compaction: Compaction;
  /** Ready segments that the leader did not enter yet. */
  readonly ready: MadeSegment[] = [];
  readonly asked: Command[] = [];
  readonly damages: string[] = [];
  removals = 0;
  isShort = false;

  constructor(log: MemoryLedLog, overrides: Partial<CompactionDeps> = {}) {
    const { journal, clock, store, turns } = log;
    const isShort = () => this.isShort;
    const room = {
      get isShort() {
        return isShort();
      },
      get usage() {
        return store.usage;
      },
      lookAgain: () => undefined,
    };
    const deps = {
      journal,
      session: SESSION,
      maker: baseMakerHere({ journal, clock }),
      retention: everything,
      room,
      clock,
      random: systemRandom,
      logger: silentLogger,
      everyEvents: 10,
      baseSyncMs: SYNC_MS,
      ...overrides,
    };
    this.log = log;
    this.compaction = new Compaction(
      deps,
      { live: log.live, auditFirstIdx: batchIndex(turns.state.auditFirstIdx) },
      {
        changeTo: (made) => this.ready.push(made),
        ask: (command) => this.asked.push(command),
        committedIdx: () => log.committedIdx,
        onDamaged: (error) => this.damages.push(error.message),
        onRemoved: () => {
          this.removals += 1;
        },
      },
    );
    log.onBatch = (recorded, bytes) => this.compaction.committed(recorded, bytes);
  }

  /** Looks, and runs to the end of the duty. */
  async look(): Promise<void> {
    this.compaction.look(this.log.turns.at);
    await this.log.clock.settle();
  }

  /** Looks, and does as compaction asks. */
  async pulse(): Promise<void> {
    await this.look();
    for (const command of this.asked.splice(0)) await this.log.turn(command);
    for (const made of this.ready.splice(0)) {
      await this.log.changeTo(made);
      this.compaction.changed(this.log.live);
    }
  }

  /** Time passes, with a pulse each second. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += limits.pulseMs) {
      await this.log.clock.advance(limits.pulseMs);
      this.log.turns.pass(limits.pulseMs);
      await this.pulse();
    }
  }

  /** Makes a due base and syncs it. */
  async base(): Promise<LiveSegment> {
    const before = this.log.number;
    await this.log.submit(10);
    for (let looks = 0; looks < 5 && this.log.number === before; looks += 1) await this.pulse();
    if (this.log.number === before) throw new Error("no base was made");
    return this.log.live;
  }

  get segments(): readonly number[] {
    return this.log.store.list();
  }
}

/** A maker that waits, fails or makes by the test's choice. */
export function aMaker(make: BaseMaker["make"]): BaseMaker {
  return { make };
}
