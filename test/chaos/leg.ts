// A leg: several rounds of a part on one swarm, then a quiet phase, then the judgement. The result is a value.
// Findings stay in the leg's folder, with all data for an investigation.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { checkHistory } from "../../src/sim/history/check-history.ts";
import type { Violation } from "../../src/sim/history/violation.ts";
import { Field, type FieldPlan, StuckError } from "./field.ts";
import { type Recoveries, recoveriesOf } from "./figures.ts";
import { type MemoryRow, MemorySampler } from "./memory.ts";
import type { Part } from "./parts.ts";
import { longLived } from "./soak.ts";
import { checkWaits } from "./waits.ts";
import { within } from "./within.ts";

const QUIET_MS = 90_000;
/** Longer than the sum of a round's own waits. */
const ROUND_MS = 10 * 60_000;
const RESTART_MS = 60_000;
const SHOWN_MAX = 20;

export interface LegResult {
  readonly rounds: number;
  readonly accepted: number;
  readonly observations: number;
  /** Planned changes of segment. */
  readonly segmentChanges: number;
  /** One task in this many was recorded. */
  readonly recordsEvery: number;
  readonly recoveries: Recoveries;
  readonly violations: readonly Violation[];
  /** Why the swarm did not come back. */
  readonly stuck: string | undefined;
  readonly troubles: readonly string[];
  /** In parts with memory samples. */
  readonly memory: readonly MemoryRow[];
  /** The machine's load average over the last minutes: times mean nothing without it. */
  readonly load: number;
}

export interface LegOptions {
  readonly part: Part;
  readonly plan: FieldPlan;
  readonly firstRound: number;
  readonly rounds: number;
  /** Keeps the folder of a leg without findings. */
  readonly keepsEvidence: boolean;
  readonly onRound: (round: number) => void;
  /** Ends the leg before its next round. */
  readonly signal: AbortSignal;
}

export async function runLeg(options: LegOptions): Promise<LegResult> {
  const { plan } = options;
  rmSync(plan.folder, { recursive: true, force: true });
  mkdirSync(plan.folder, { recursive: true });
  const field = await Field.open(plan);
  try {
    const sampler = plan.samplesMemory ? new MemorySampler(() => longLived(field)) : undefined;
    const ran = await runRounds(field, options);
    const load = loadavg()[1] ?? 0;
    const result = { ...(await judge(field, options, ran)), memory: sampler?.stop() ?? [], load };
    const isClean = result.violations.length === 0 && result.stuck === undefined;
    if (!isClean || options.keepsEvidence) keepEvidence(field, result);
    else rmSync(plan.folder, { recursive: true, force: true });
    return result;
  } catch (error) {
    keepEvidence(field, String(error));
    throw error;
  } finally {
    await field.close();
  }
}

async function runRounds(field: Field, { part, firstRound, rounds, onRound, signal }: LegOptions) {
  let done = 0;
  try {
    for (; done < rounds && !signal.aborted; done += 1) {
      field.note(`round ${firstRound + done}`);
      await within(ROUND_MS, `round ${firstRound + done} is over`, part.round(field, done));
      onRound(firstRound + done + 1);
    }
    field.note("peace");
    await field.quiesce(QUIET_MS);
    return { rounds: done, stuck: undefined, isWhole: true };
  } catch (error) {
    if (!(error instanceof StuckError)) throw error;
    field.note(`stuck: ${error.message}`);
    return {
      rounds: done,
      stuck: `round ${firstRound + done}: ${error.message}`,
      isWhole: await cameBack(field, part),
    };
  }
}

/** Waits for a stuck swarm after everything is healed. State held only by coordinators is not lost, and is
 *  judged after they have written it back. */
async function cameBack(field: Field, part: Part): Promise<boolean> {
  try {
    field.heal();
    if (part.restartsServersToRead === true) await restartServers(field);
    await field.quiesce(QUIET_MS);
    field.note("it came back late");
    return true;
  } catch (error) {
    if (!(error instanceof StuckError)) throw error;
    field.note(`it did not come back either when all was healed: ${error.message}`);
    return false;
  }
}

/** Outdated replicas are read as they are. */
async function restartToRead(field: Field): Promise<void> {
  try {
    await restartServers(field);
  } catch (error) {
    if (!(error instanceof StuckError)) throw error;
    field.note(error.message);
  }
}

async function restartServers(field: Field): Promise<void> {
  if (field.damaged !== undefined) return await field.replaceDamaged();
  for (const server of field.plan.servers.members)
    await within(RESTART_MS, `server ${server.name} runs again`, server.restart());
}

async function judge(
  field: Field,
  { part }: LegOptions,
  { rounds, stuck, isWhole }: Awaited<ReturnType<typeof runRounds>>,
): Promise<Omit<LegResult, "memory" | "load">> {
  const { counts, segmentChanges } = field.processes;
  const troubles = [...field.processes.troubles];
  field.heal();
  await field.endNodes();
  for (const why of new Set(field.witness.interruptions)) field.note(`the witness could not read on: ${why}`);
  if (part.restartsServersToRead === true) await restartToRead(field);
  const { observations, seen, line } = await field.collect();
  const readings = field.witness.readings();
  const history = { observations, readings, journal: line };
  return {
    rounds,
    accepted: counts.accepted,
    observations: observations.length,
    segmentChanges,
    recordsEvery: field.plan.recordsEvery,
    recoveries: recoveriesOf(field.faults, observations, seen),
    violations: [
      ...checkHistory(history, { mustAllHaveEnded: isWhole }),
      ...(isWhole ? checkWaits(counts) : []),
    ],
    stuck,
    troubles,
  };
}

/** @param result or the failure of the tool itself */
function keepEvidence(field: Field, result: LegResult | string): void {
  const { folder } = field.plan;
  writeFileSync(join(folder, "steps.log"), `${field.log.join("\n")}\n`);
  writeFileSync(join(folder, "result.json"), JSON.stringify(result, undefined, 2));
  const batches = field.witness.seen.map(({ segment, seenMs, batch }) =>
    JSON.stringify({ segment, seenMs, batch }),
  );
  writeFileSync(join(folder, "journal.ndjson"), `${batches.join("\n")}\n`);
  for (const { name, log } of field.processes.all)
    writeFileSync(join(folder, `${name}.log`), `${log.join("\n")}\n`);
  for (const server of field.plan.servers.members)
    writeFileSync(join(folder, `server-${server.name}.log`), server.log());
}

/** For display: the first findings, and the total number. */
export function shownViolations({ violations, stuck }: LegResult): string[] {
  const lines = violations
    .slice(0, SHOWN_MAX)
    .map(({ promise, checker, sentence }) => `${promise} ${checker}: ${sentence}`);
  if (violations.length > SHOWN_MAX) lines.push(`… and ${violations.length - SHOWN_MAX} more`);
  return stuck === undefined ? lines : [`stuck: ${stuck}`, ...lines];
}
