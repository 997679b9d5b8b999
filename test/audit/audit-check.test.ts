// The verification of the journal while a coordinator leads: `status` says up to which batch, a changed batch is named,
// and whoever reads the batch is told.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { AuditCheck, type FoundAudit, type JournalVerifier } from "../../src/audit/verifying/audit-check.ts";
import { ThreadVerifier } from "../../src/audit/verifying/thread-verifier.ts";
import { SwarmClient } from "../../src/client/swarm.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { UnreachableError } from "../../src/errors.ts";
import { projectId, swarmId } from "../../src/ids.ts";
import { openFileJournal } from "../../src/journal/file.ts";
import type { JournalReader } from "../../src/journal/journal.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { limits } from "../../src/limits.ts";
import type { StatusResponse } from "../../src/protocol/schemas.ts";
import { aCompactedLog, copyInto, placeOf, Tampered } from "../journal/tampered.ts";
import { keptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { silentLogger, startTestSwarm } from "../support/swarm.ts";

const CHANGED_IDX = 14;

describe("a check of the audit", () => {
  /** Answers what the test says, and notes the runs. */
  class Scripted implements JournalVerifier {
    readonly answers: (FoundAudit | Error)[] = [];
    runs = 0;

    async verify(_: AbortSignal, onProgress: (idx: number) => void): Promise<FoundAudit | undefined> {
      this.runs += 1;
      onProgress(3);
      const answer = this.answers.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    }
  }

  function aCheck(...answers: (FoundAudit | Error)[]) {
    const clock = new ManualClock();
    const { logger, lines } = keptLog();
    const verifier = new Scripted();
    verifier.answers.push(...answers);
    const check = new AuditCheck({ verifier, clock, logger });
    onTestFinished(() => check.end());
    return { clock, lines, verifier, check };
  }

  const whole: FoundAudit = { firstIdx: 1, lastIdx: 9, fault: undefined };

  it("runs some time after the term's beginning, and then once a day", async () => {
    const { clock, verifier, check } = aCheck(whole, { ...whole, lastIdx: 12 });
    await clock.advance(limits.auditCheckDelayMs - 1);
    expect([verifier.runs, check.status]).toEqual([0, undefined]);
    await clock.advance(1);
    expect(check.status).toEqual({ idx: 9, endedAt: clock.now(), fault: undefined });
    await clock.advance(limits.auditCheckEveryMs);
    expect([verifier.runs, check.status?.idx]).toEqual([2, 12]);
  });

  it("with a storage failure keeps earlier findings, and runs again soon", async () => {
    const { clock, lines, verifier, check } = aCheck(new UnreachableError("no answer"), whole);
    await clock.advance(limits.auditCheckDelayMs);
    expect(check.status).toEqual({ idx: 3, endedAt: undefined, fault: undefined });
    expect(lines).toMatchObject([{ why: "no answer" }]);
    await clock.advance(limits.auditCheckRetryMs);
    expect([verifier.runs, check.status?.idx]).toEqual([2, 9]);
  });

  it("names a fault in the log", async () => {
    const fault = { segment: 2, idx: 5, text: "batch 5 was changed" };
    const { clock, lines, check } = aCheck({ firstIdx: 1, lastIdx: 4, fault });
    await clock.advance(limits.auditCheckDelayMs);
    expect(check.status).toMatchObject({ idx: 4, fault });
    expect(lines).toMatchObject([{ level: "error", idx: 5, text: "batch 5 was changed" }]);
  });

  it("does not run after its end", async () => {
    const { clock, verifier, check } = aCheck(whole);
    check.end();
    await clock.advance(limits.auditCheckDelayMs);
    expect(verifier.runs).toBe(0);
  });
});

describe("a swarm on a journal in files", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "waggle-audit-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** Starts a swarm on the journal, lets the thread verify, and returns what `status` says. */
  async function verified(source: JournalReader) {
    const journal = await openFileJournal({ folder });
    await copyInto(journal, source);
    const clock = new ManualClock();
    const verifier = new ThreadVerifier({ kind: "file", folder });
    const swarm = await startTestSwarm({ clock, journal, verifier });
    const client = new SwarmClient({
      transport: swarm.hub.connect(),
      swarm: swarmId("test"),
      project: projectId("default"),
      user: "tester",
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
      onClose: async () => undefined,
    });
    onTestFinished(async () => {
      await client.close();
      await swarm.stop();
      await journal.close();
    });
    await clock.advance(limits.auditCheckDelayMs);
    const status = async (): Promise<StatusResponse["journal"]> => (await client.status()).journal;
    await expect.poll(async () => (await status()).verified?.at, { timeout: 30_000 }).toBeDefined();
    return { client, journal: await status() };
  }

  it("is verified whole", async () => {
    const log = await aCompactedLog();
    const { journal } = await verified(new MemoryJournal(log.store));
    expect(journal.verified?.fault).toBeUndefined();
    expect(journal.verified?.idx).toBeGreaterThan(log.tail.idx);
  });

  it("has a changed batch behind its newest base named, by status and by every reader", async () => {
    const log = await aCompactedLog();
    const source = new Tampered(new MemoryJournal(log.store));
    const [segment, position] = await placeOf(log, CHANGED_IDX);
    source.change(segment, position, (text) => text.replace('"kind":"k"', '"kind":"K"'));
    const { client, journal } = await verified(source);
    expect(journal.verified).toMatchObject({ idx: CHANGED_IDX - 1, fault: { idx: CHANGED_IDX } });
    const marked = new Set<number>();
    const read = new Set<number>();
    for await (const { idx, isChanged } of client.events({ from: 1 })) {
      read.add(idx);
      if (isChanged) marked.add(idx);
    }
    expect([...marked]).toEqual([CHANGED_IDX]);
    expect(read.size).toBeGreaterThan(CHANGED_IDX);
  });
});
