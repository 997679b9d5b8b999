// Opens a swarm's journal on a server with JetStream, and inspects the streams for `waggle doctor`. During a failover
// it waits for a while. Creates nothing: the first leader creates the first segment.

import { systemClock, systemRandom } from "../../clock.ts";
import {
  BrokerError,
  InvalidConfigError,
  mayAnswerLater,
  UnreachableError,
  WaggleError,
} from "../../errors.ts";
import type { SwarmId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { swarmPrefix } from "../../protocol/subjects.ts";
import { earlierFormError } from "../journal-errors.ts";
import { apiCodes, isStreamMissing, StreamApi, StreamApiError, type StreamReport } from "./api.ts";
import { Retry } from "./retry.ts";
import {
  checkMaxPayload,
  checkSettings,
  requireSettings,
  type SettingCheck,
  segmentNumberIn,
} from "./settings.ts";
import { StreamJournal } from "./stream-journal.ts";
import type { StreamWire } from "./wire.ts";

export interface StreamsOptions {
  readonly swarm: SwarmId;
  readonly signal?: AbortSignal | undefined;
}

export interface OpeningOptions extends StreamsOptions {
  /** Number of replicas of each new segment. Default: as for the newest segment, or 1. */
  readonly replicas?: number | undefined;
  /** Bytes of all segments together. Default `limits.journalBytesMax`. Never more than the account may store. */
  readonly bytesMax?: number | undefined;
}

export type FoundSegment = { readonly number: number; readonly stream: string } & (
  | { readonly kind: "there"; readonly report: StreamReport; readonly settings: readonly SettingCheck[] }
  /** Its servers do not answer. */
  | { readonly kind: "silent"; readonly error: WaggleError }
);

export interface JournalInspection {
  /** Ascending; none before the first coordinator leads. */
  readonly segments: readonly FoundSegment[];
  readonly maxPayload: SettingCheck;
}

/** @throws UnreachableError
 *  @throws ForbiddenError
 *  @throws BrokerError when JetStream is off
 *  @throws InvalidConfigError when the servers cannot keep so many replicas
 *  @throws WaggleError WAGGLE_JOURNAL_SETTINGS when a stream or the server has wrong settings, or the journal is of an
 *  earlier version */
export async function openStreamJournal(wire: StreamWire, options: OpeningOptions): Promise<StreamJournal> {
  const { segments, maxPayload } = await inspectStreams(wire, options);
  requireSettings("this NATS server", [maxPayload]);
  for (const found of segments)
    if (found.kind === "there") requireSettings(`the stream ${found.stream}`, found.settings);
  const newest = segments.findLast((found) => found.kind === "there");
  const { swarm, replicas = Number(newest?.report.config["num_replicas"] ?? 1) } = options;
  requireReplicas(wire, replicas);
  const bytesMax = Math.min(
    options.bytesMax ?? limits.journalBytesMax,
    Math.floor((await storageMaxOf(wire)) / replicas),
  );
  return new StreamJournal({ wire, swarm, replicas, bytesMax });
}

/** Changes nothing. @throws as `openStreamJournal`, but for wrong settings */
export async function inspectStreams(wire: StreamWire, options: StreamsOptions): Promise<JournalInspection> {
  const { swarm } = options;
  const api = new StreamApi(wire);
  const names = await patiently(wire, options, () => api.names(`${swarmPrefix(swarm)}.>`));
  refuseOldJournal(names, swarm);
  const found = await Promise.all(
    names.map(async (stream) => {
      const number = segmentNumberIn(stream, swarm);
      return number === undefined ? undefined : await inspectSegment(wire, options, { stream, number });
    }),
  );
  const segments = found.filter((each) => each !== undefined).sort((one, other) => one.number - other.number);
  return { segments, maxPayload: checkMaxPayload(wire.maxPayloadBytes) };
}

/** Undefined if the stream was removed meanwhile. */
async function inspectSegment(
  wire: StreamWire,
  options: StreamsOptions,
  { stream, number }: { readonly stream: string; readonly number: number },
): Promise<FoundSegment | undefined> {
  const { swarm } = options;
  try {
    const report = await patiently(wire, options, () => new StreamApi(wire).info(stream));
    const settings = checkSettings(report.config, { swarm, number });
    return { number, stream, kind: "there", report, settings };
  } catch (error) {
    if (isStreamMissing(error)) return undefined;
    if (!(error instanceof WaggleError)) throw error;
    return { number, stream, kind: "silent", error };
  }
}

/** @throws the last error after `limits.journalOpenMs` */
async function patiently<T>(
  wire: StreamWire,
  { signal }: { readonly signal?: AbortSignal | undefined },
  ask: () => Promise<T>,
): Promise<T> {
  const hasNone = wire.servers === "without-jetstream";
  const patienceMs = hasNone ? 0 : limits.journalOpenMs;
  const retry = new Retry({ wire, clock: systemClock, random: systemRandom, signal, patienceMs });
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await ask();
    } catch (error) {
      if (!mayAnswerLater(error) || isStreamMissing(error)) throw error;
      await retry.pause(hasNone || isOff(error) ? noJetStreamError(error) : error);
    }
  }
}

/** Infinity without a limit, and if the user has no permission to ask. */
async function storageMaxOf(wire: StreamWire): Promise<number> {
  try {
    return (await new StreamApi(wire).storageMax()) ?? Number.POSITIVE_INFINITY;
  } catch (error) {
    if (error instanceof UnreachableError) return Number.POSITIVE_INFINITY;
    throw error;
  }
}

function refuseOldJournal(names: readonly string[], swarm: SwarmId): void {
  const old = [`WAGGLE_${swarm}`, `WAGGLE_${swarm}_SNAP`].filter((name) => names.includes(name));
  if (old.length === 0) return;
  const removals = old.map((name) => `\`nats stream rm ${name}\``).join(" and ");
  throw earlierFormError(`the stream ${old[0]}`, `remove the old journal with ${removals}`);
}

function requireReplicas({ servers, serverVersion }: StreamWire, replicas: number): void {
  if (replicas <= 1) return;
  if (losesReplicatedRecords(serverVersion))
    throw new InvalidConfigError(
      `replicas: nats-server ${serverVersion} may lose acknowledged records of a replicated stream when the stream's leader ` +
        "is killed; update the servers to 2.10 or newer, or leave --replicas out",
      { field: "replicas" },
    );
  if (servers !== "one") return;
  throw new InvalidConfigError(
    `replicas: this NATS server is not in a cluster, so the journal cannot be kept on ${replicas} servers; leave --replicas ` +
      "out, or name a cluster of NATS servers with --nats",
    { field: "replicas" },
  );
}

/** Before 2.10 (docs/adr/0025). */
function losesReplicatedRecords(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return version !== "" && (major < 2 || (major === 2 && minor < 10));
}

/** True if JetStream is off. Servers that fail over may answer so too; only the last answer counts. */
function isOff(error: UnreachableError): boolean {
  if (!(error instanceof StreamApiError)) return false;
  return error.errCode === apiCodes.off || error.errCode === apiCodes.offForAccount;
}

function noJetStreamError(cause: unknown): BrokerError {
  return new BrokerError(
    "the journal needs JetStream, and this NATS server or account has none; start the server with " +
      "`nats-server -js -sd <folder>`, enable JetStream for the account, or name a different server",
    { cause },
  );
}
