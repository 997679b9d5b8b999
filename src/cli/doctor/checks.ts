// The checks of `waggle doctor`, each with its finding, and with a remedy if it is not ok. A check is left out if an
// earlier failure makes it impossible.

import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { duration } from "../../audit/describe.ts";
import { journalFolder } from "../../broker/data-folder.ts";
import { type FoundBroker, findBroker } from "../../broker/find-broker.ts";
import { isRecentEnough, NATS_SERVER_VERSION_MIN } from "../../broker/nats-binary.ts";
import { SwarmClient } from "../../client/swarm.ts";
import { systemClock, systemRandom } from "../../clock.ts";
import { wantedRoom } from "../../coordinator/compacting/kept-room.ts";
import { counted, formatCount } from "../../count-text.ts";
import { NoLeaderError, WaggleError } from "../../errors.ts";
import { swarmId } from "../../ids.ts";
import type { Journal, JournalUsage } from "../../journal/journal.ts";
import { inspectNatsStreams, openNatsJournal } from "../../journal/nats.ts";
import { checkMaxPayload } from "../../journal/stream/settings.ts";
import { limits } from "../../limits.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import { subjectsOf } from "../../protocol/subjects.ts";
import { connectNats, type NatsOptions, type NatsTransport } from "../../transport/nats.ts";
import { connectionOf } from "../connection.ts";
import { exitCodeOf, exitCodes } from "../exit-code.ts";
import { formatBytes } from "../format.ts";
import type { VerbContext } from "../verb.ts";
import type { Check } from "./check.ts";
import { checkJournalFolder } from "./journal.ts";
import { LeadHeard } from "./leader.ts";
import { checkLog } from "./log.ts";
import { checkSecurity } from "./security.ts";
import { checkRoom, checkStreams } from "./stream.ts";

export async function* runChecks(context: VerbContext): AsyncGenerator<Check> {
  yield checkRuntime();
  yield await checkDataFolder(context);
  const broker = await attempt("broker", () => findFor(context));
  yield broker.check;
  const isFileSound = !mayHaveFileJournal(broker.value, context) || (yield* checkFile(context));
  if (broker.value === undefined) return;
  const options = connectionOf(broker.value, context, "waggle doctor");
  const connection = await attempt("connection", () => connectFor(options));
  yield connection.check;
  if (connection.value === undefined) return;
  try {
    yield* checkServer(broker.value, connection.value);
    yield* checkSecurity(broker.value, { transport: connection.value, options, context });
    const swarm = new SwarmView(connection.value, context);
    try {
      const isStream = broker.value.kind !== "development";
      const isSound = isStream ? yield* checkJournal(options, { swarm, context }) : isFileSound;
      const isLed = yield* checkSwarm(swarm, { broker: broker.value, isSound, context });
      if (!isLed && isSound) yield* checkDurabilityAlone(broker.value, options, context);
    } finally {
      await swarm.close();
    }
  } finally {
    await connection.value.close();
  }
}

interface Attempted<Value> {
  readonly check: Check;
  readonly value: Value | undefined;
}

/** A step that later checks need: its error becomes a failed check with the error's advice. */
async function attempt<Value>(
  name: string,
  take: () => Promise<{ readonly found: string; readonly value: Value }>,
): Promise<Attempted<Value>> {
  try {
    const { found, value } = await take();
    return { check: { name, status: "ok", found }, value };
  } catch (error) {
    if (!(error instanceof WaggleError)) throw error;
    return {
      check: { name, status: "fail", found: error.message, exitCode: exitCodeOf(error) },
      value: undefined,
    };
  }
}

// --- this machine -----------------------------------------------------------------------------------

/** bin/waggle.js has already refused a version that is too old. */
function checkRuntime(): Check {
  return { name: "runtime", status: "ok", found: `Node ${process.versions.node}` };
}

async function checkDataFolder({ settings: { dataFolder } }: VerbContext): Promise<Check> {
  const name = "data folder";
  const isThere = await stat(dataFolder).then(
    (stats) => stats.isDirectory(),
    () => undefined,
  );
  if (isThere === false) {
    return {
      name,
      status: "fail",
      found: `${dataFolder} is no folder`,
      advice: "name another folder with --data-folder",
    };
  }
  const folder = isThere === true ? dataFolder : dirname(dataFolder);
  const isWritable = await access(folder, constants.W_OK).then(
    () => true,
    () => false,
  );
  if (!isWritable) {
    return {
      name,
      status: "warn",
      found: `${folder} cannot be written`,
      advice: "name another folder with --data-folder",
    };
  }
  return { name, status: "ok", found: isThere === true ? dataFolder : `${dataFolder}, does not exist yet` };
}

// --- the server -------------------------------------------------------------------------------------

async function findFor({ settings, shell }: VerbContext) {
  const value = await findBroker({ mode: "find-only", ...settings, env: shell.env });
  return { found: value.sentence, value };
}

async function connectFor(options: NatsOptions) {
  const value = await connectNats(options);
  const sentAt = performance.now();
  await value.flush();
  return { found: `answers in ${(performance.now() - sentAt).toFixed(1)} ms`, value };
}

function* checkServer({ kind }: FoundBroker, transport: NatsTransport): Generator<Check> {
  const { version, hasJetStream, maxPayloadBytes } = transport.server();
  const isDevelopment = kind === "development";
  if (isDevelopment) yield { name: "server", status: "ok", found: `development broker ${version}` };
  else if (isRecentEnough({ version }))
    yield { name: "server", status: "ok", found: `nats-server ${version}` };
  else {
    const advice = `upgrade it to ${NATS_SERVER_VERSION_MIN} or newer`;
    yield { name: "server", status: "fail", found: `nats-server ${version}`, advice };
  }

  if (isDevelopment) yield { name: "JetStream", status: "ok", found: "not needed: the journal is a file" };
  else if (hasJetStream) yield { name: "JetStream", status: "ok", found: "enabled" };
  else {
    const advice = "enable it: jetstream {} in the server's configuration, or nats-server -js -sd FOLDER";
    yield {
      name: "JetStream",
      status: "warn",
      found: "not enabled on this server; a different server of the cluster may have it",
      advice,
    };
  }

  const found = formatBytes(maxPayloadBytes);
  if (checkMaxPayload(maxPayloadBytes).ok) yield { name: "max payload", status: "ok", found };
  else {
    const advice = `raise max_payload to ${formatBytes(limits.maxPayloadBytesDefault)} in the server's configuration`;
    yield { name: "max payload", status: "fail", found, advice };
  }
}

/** @returns whether nothing failed */
async function* checkJournal(
  connection: NatsOptions,
  deps: { readonly swarm: SwarmView; readonly context: VerbContext },
): AsyncGenerator<Check, boolean> {
  let isSound = true;
  for await (const check of journalChecks(connection, deps)) {
    isSound &&= check.status !== "fail";
    yield check;
  }
  return isSound;
}

async function* journalChecks(
  connection: NatsOptions,
  { swarm, context }: { readonly swarm: SwarmView; readonly context: VerbContext },
): AsyncGenerator<Check> {
  const { settings, signal } = context;
  let journal: Journal | undefined;
  try {
    const inspection = await inspectNatsStreams({ connection, swarm: swarmId(settings.swarm), signal });
    const checks = [...checkStreams(inspection)];
    yield* checks;
    if (inspection.segments.length === 0 || checks.some(({ status }) => status === "fail")) return;
    journal = await openJournal(connection, context);
    const usage = await swarm.usage();
    yield* checkLog(journal, { reads: usage === undefined });
    yield checkRoom({ ...(await journal.usage()), ...usage });
  } catch (error) {
    if (!(error instanceof WaggleError)) throw error;
    const name = "streams";
    if (error.code === "WAGGLE_FORBIDDEN") {
      const found = `not examined: ${error.message}`;
      yield {
        name,
        status: "warn",
        found,
        advice: "only coordinators need it: run doctor with their credentials",
      };
      return;
    }
    const advice = "start the servers that are stopped; in a cluster JetStream needs a majority of them";
    yield { name, status: "fail", found: error.message, advice, exitCode: exitCodeOf(error) };
  } finally {
    await journal?.close();
  }
}

/** Opens the journal like a coordinator with the same settings. */
async function openJournal(connection: NatsOptions, { settings, signal }: VerbContext): Promise<Journal> {
  const bytesMax = wantedRoom(settings.retention.bytes);
  return await openNatsJournal({ connection, swarm: swarmId(settings.swarm), bytesMax, signal });
}

// --- the journal in a file --------------------------------------------------------------------------

/** Without a broker the journal in files is checked, too, unless the settings name a server. */
function mayHaveFileJournal(broker: FoundBroker | undefined, { settings }: VerbContext): boolean {
  if (broker !== undefined) return broker.kind === "development";
  return settings.nats === undefined && settings.natsContext === undefined;
}

/** @returns false if the check failed */
async function* checkFile({ settings }: VerbContext): AsyncGenerator<Check, boolean> {
  const check = await checkJournalFolder(journalFolder(settings));
  if (check !== undefined) yield check;
  return check?.status !== "fail";
}

// --- the swarm --------------------------------------------------------------------------------------

/** Answers of the coordinators: requested once, used by several checks. */
class SwarmView {
  readonly lead: LeadHeard;
  readonly #client: SwarmClient;
  readonly #signal: AbortSignal;
  #status: Promise<StatusResponse> | undefined;

  constructor(transport: NatsTransport, { settings, logger, signal }: VerbContext) {
    const swarm = swarmId(settings.swarm);
    this.lead = new LeadHeard(transport, swarm);
    this.#client = new SwarmClient({
      ...{ transport, swarm, logger, clock: systemClock, random: systemRandom },
      project: settings.project,
      user: settings.user,
      onClose: async () => undefined,
    });
    this.#signal = signal;
  }

  /** @throws WaggleError */
  status(): Promise<StatusResponse> {
    this.#status ??= this.again();
    return this.#status;
  }

  /** Asks again. @throws WaggleError */
  again(): Promise<StatusResponse> {
    return this.#client.status({ signal: this.#signal, timeoutMs: limits.leaderLookMs });
  }

  /** Usage of the journal as a coordinator counts it; undefined without an answer. */
  async usage(): Promise<JournalUsage | undefined> {
    try {
      const { bytes, bytesMax } = (await this.status()).journal;
      return { bytes, bytesMax };
    } catch (error) {
      if (!(error instanceof WaggleError)) throw error;
      return undefined;
    }
  }

  async close(): Promise<void> {
    this.lead.stop();
    await this.#client.close();
  }
}

interface SwarmChecks {
  readonly broker: FoundBroker;
  /** Whether the checks so far found no problem of the journal. */
  readonly isSound: boolean;
  readonly context: VerbContext;
}

/** @returns whether a coordinator answered */
async function* checkSwarm(
  swarm: SwarmView,
  { broker, isSound, context }: SwarmChecks,
): AsyncGenerator<Check, boolean> {
  const { lead } = swarm;
  try {
    const status = await swarm.status();
    const isStale = status.stale === true;
    const again = () => swarm.again();
    yield isStale
      ? await checkSilentLeader(lead, { isSound, context, byStandby: { status, again } })
      : checkLeader(status);
    if (!isStale) yield checkClock(status, broker);
    yield checkDurability(status.journal);
    yield* checkWriters(status);
    yield checkBase(status);
    yield* checkAudit(status);
    return true;
  } catch (error) {
    if (!(error instanceof WaggleError)) throw error;
    if (error instanceof NoLeaderError) yield leaderless({ isSound, context });
    else yield await checkSilentLeader(lead, { isSound, context });
    return false;
  }
}

function checkLeader({ leader, term, idx, agents, swarm }: StatusResponse): Check {
  const online = agents.filter(({ status }) => status !== "offline").length;
  const found = `${leader} leads ${swarm}, term ${term}, batch ${idx}; ${counted(online, "agent")} online`;
  return { name: "leader", status: "ok", found };
}

type Unled = Pick<SwarmChecks, "isSound" | "context">;

const mendFirst = "first fix the journal problem reported above";

const startAdvice =
  "start a coordinator with `waggle up`; if it halts with exit code 7, see `waggle journal recover`";

function leaderless({ isSound, context }: Unled): Check {
  const found = `no coordinator leads the swarm ${context.settings.swarm}`;
  const advice = isSound ? startAdvice : mendFirst;
  return { name: "leader", status: "fail", found, advice, exitCode: exitCodes.unreachable };
}

interface StandbyAnswer {
  readonly status: StatusResponse;
  /** Asks again. @throws WaggleError */
  readonly again: () => Promise<StatusResponse>;
}

/** Coordinators run, but none answers as the leader. A coordinator leads if its heartbeat says so, or if it writes
 *  batches.
 *  @param byStandby the answer of a standby, if any */
async function checkSilentLeader(
  lead: LeadHeard,
  { isSound, context, byStandby }: Unled & { readonly byStandby?: StandbyAnswer },
): Promise<Check> {
  const { swarm } = context.settings;
  const heartbeat = await lead.heard(limits.leaderHeardMs, context.signal);
  const head = { name: "leader", status: "fail", exitCode: exitCodes.unreachable } as const;
  if (heartbeat !== undefined) {
    const found = `${heartbeat.id} leads ${swarm}, term ${heartbeat.term}, batch ${heartbeat.idx}, and does not answer`;
    const advice = isSound ? "look at its log" : `${mendFirst}; then the leader continues by itself`;
    return { ...head, found, advice };
  }
  if (byStandby === undefined) return leaderless({ isSound, context });
  const { leader, term, idx } = byStandby.status;
  const later = await byStandby.again().catch((error: unknown) => {
    if (!(error instanceof WaggleError)) throw error;
    return undefined; // no further information
  });
  if (later !== undefined && later.stale !== true) return checkLeader(later);
  if (later !== undefined && later.term === term && later.idx > idx) {
    const found = `${leader} leads ${swarm}, term ${term}: it writes in the journal (batch ${idx}, then ${later.idx}) and cannot be reached`;
    const advice = `look in its log for the reason why its connection \`waggle coordinator ${leader}\` does not come back; after some seconds it lets a standby lead; otherwise stop the coordinator`;
    return { ...head, found, advice };
  }
  const advice = isSound ? "a standby answered: wait until it leads, or look at its log" : mendFirst;
  return { ...head, found: "none answers at the moment", advice };
}

/** Journal time follows the leader's clock. Without new batches it says nothing about the clock. */
function checkClock({ at, leader }: StatusResponse, { local }: FoundBroker): Check {
  if (local !== undefined) return { name: "clock", status: "ok", found: "the same machine" };
  const differenceMs = Math.abs(Date.now() - at);
  const found = `differs by ${duration(differenceMs)} from the journal's time`;
  if (differenceMs <= limits.clockDifferenceMsMax) return { name: "clock", status: "ok", found };
  return { name: "clock", status: "warn", found, advice: `set this machine's clock and ${leader}'s by NTP` };
}

function checkBase({ idx, at, journal, stale }: StatusResponse): Check {
  const name = "base";
  const { auditFirstIdx, base, baseFailure } = journal;
  const audit = `the audit begins at batch ${formatCount(auditFirstIdx)}`;
  if (baseFailure !== undefined) {
    const found = `${baseFailure}; ${audit}`;
    const advice =
      "look at the storage; the leader tries again by itself, and until then a restart takes longer";
    return { name, status: "warn", found, advice };
  }
  const none = stale === true ? "known only to the leader" : "none yet: a restart reads the whole journal";
  const newest =
    base === undefined
      ? none
      : `of batch ${formatCount(base.idx)}, ${duration(at - base.at)} old (batch ${formatCount(idx)} is the newest), ${formatBytes(base.bytes)}`;
  return { name, status: "ok", found: `${newest}; ${audit}` };
}

/** The leader's verification of the journal. No check before the verification has begun. */
export function* checkAudit({ at, journal: { verified } }: StatusResponse): Generator<Check> {
  if (verified === undefined) return;
  const name = "audit";
  const { idx, at: endedAt, fault } = verified;
  if (fault !== undefined) {
    const advice =
      "`waggle verify` shows what was changed; batches up to the fault, and the present state, are sound";
    return yield { name, status: "fail", found: fault.text, advice, exitCode: exitCodes.journalDamaged };
  }
  const when = endedAt === undefined ? "still reading" : `${duration(Math.max(0, at - endedAt))} ago`;
  yield { name, status: "ok", found: `as it was written up to batch ${formatCount(idx)}, verified ${when}` };
}

/** Foreign records in the journal. No check without foreign records. */
export function* checkWriters({ at, swarm, journal: { foreignRecords } }: StatusResponse): Generator<Check> {
  if (foreignRecords === undefined) return;
  const name = "writers";
  const { count, lastAt } = foreignRecords;
  const agoMs = Math.max(0, at - lastAt);
  const found = `${counted(count, "record")} in the journal from other writers than its coordinators, the last ${duration(agoMs)} ago; readers skip foreign records`;
  if (agoMs > limits.foreignRecordShownMs) return yield { name, status: "ok", found };
  const subject = subjectsOf(swarmId(swarm)).segment("*");
  const advice = `find the client that publishes on \`${subject}\`, and restrict the subject to coordinators in the server's permissions; foreign records slow the swarm down and fill its journal`;
  yield { name, status: "warn", found, advice };
}

function checkDurability(journal: Pick<StatusResponse["journal"], "durability" | "sentence">): Check {
  const { durability, sentence } = journal;
  const found = `${durability}. ${sentence}`;
  if (durability !== "memory") return { name: "durability", status: "ok", found };
  return {
    name: "durability",
    status: "warn",
    found,
    advice: "beyond a trial, use a journal that survives the end of its process",
  };
}

/** Without an answer of the leader: the stream's durability, or the durability that a coordinator here would have. */
async function* checkDurabilityAlone(
  { kind }: FoundBroker,
  connection: NatsOptions,
  context: VerbContext,
): AsyncGenerator<Check> {
  if (kind === "development") {
    const sentence = `Every batch is on the disk, in ${journalFolder(context.settings)}, before the answer.`;
    return yield checkDurability({ durability: "file", sentence });
  }
  try {
    const journal = await openJournal(connection, context);
    const { class: durability, sentence } = journal.durability;
    await journal.close();
    yield checkDurability({ durability, sentence });
  } catch (error) {
    if (!(error instanceof WaggleError)) throw error; // an earlier check reports the stream's problem
  }
}
