// Finds or creates a swarm's stream on a server, and reads its settings back. Waits a while for servers that fail over.
// Not here: the connection (nats.ts), and what the settings must be (stream-settings.ts).
//
// The rule: of a swarm's two streams the journal is created first, the snapshots' second, and neither is ever removed
// once it was used. So a journal without snapshots is one whose first start died between the two, and is taken; and
// snapshots without a journal, be they empty, say that the journal was deleted: nobody makes a new one in its place.
// The other way round a first start that died would look like a loss, or a loss like it.

import { systemClock } from "../clock.ts";
import { Endurance } from "../endurance.ts";
import { BrokerError, JournalDamagedError, UnreachableError } from "../errors.ts";
import { limits } from "../limits.ts";
import { Retry } from "./retry.ts";
import { apiCodes, StreamApi, StreamApiError, type StreamReport } from "./stream-api.ts";
import { adviceOnLostStream } from "./stream-identity.ts";
import {
  bytesMaxChoices,
  checkMaxPayload,
  checkStreamSettings,
  missingStreamCheck,
  settingsError,
  streamConfigOf,
  streamNameOf,
  type WantedStream,
} from "./stream-settings.ts";
import type { StreamWire } from "./stream-wire.ts";

export interface OpeningWire extends StreamWire {
  /** A server of a cluster may pass questions on to one that has JetStream. */
  readonly mayHaveJetStream: boolean;
}

export interface OpeningOptions extends WantedStream {
  /** Whether to create the stream if it is missing: coordinators do, readers do not. */
  readonly create: boolean;
  readonly signal?: AbortSignal;
}

/** @throws UnreachableError; BrokerError where JetStream is off or the stream cannot be created;
 *  WaggleError WAGGLE_JOURNAL_SETTINGS where the stream is missing or not what it must be;
 *  JournalDamagedError where a journal is to be created beside snapshots of one */
export async function openStream(wire: OpeningWire, wanted: OpeningOptions): Promise<StreamReport> {
  const api = new StreamApi(wire, streamNameOf(wanted));
  let found = await findStream(wire, api, wanted);
  if (found === undefined && !wanted.create) throw settingsError(wanted, [missingStreamCheck(wanted)]);
  if (wanted.purpose === "journal") found ??= await requireNoSnapshots(wire, api, wanted);
  const report = found ?? (await createStream(wire, api, wanted));
  const checks = [...checkStreamSettings(report.config, wanted), checkMaxPayload(wire.maxPayloadBytes)];
  const wrong = checks.filter(({ ok }) => !ok);
  if (wrong.length > 0) throw settingsError(wanted, wrong);
  return report;
}

/** Undefined when there is none. */
export async function findStream(
  wire: OpeningWire,
  api: StreamApi,
  { signal = new AbortController().signal }: { readonly signal?: AbortSignal },
): Promise<StreamReport | undefined> {
  const patienceMs = wire.mayHaveJetStream ? limits.journalOpenMs : 0;
  const retry = new Retry({ clock: systemClock, signal, patienceMs }, (listener) => wire.onStatus(listener));
  for (;;) {
    signal.throwIfAborted();
    try {
      return await api.info();
    } catch (error) {
      if (!(error instanceof UnreachableError)) throw error;
      if (error instanceof StreamApiError && error.errCode === apiCodes.streamNotFound) return undefined;
      await retry.pause(isOff(error) || !wire.mayHaveJetStream ? noJetStreamError(error) : error);
    }
  }
}

/** Of a journal that was not found: there are no snapshots either, or there is a journal after all. Another coordinator
 *  may have created both meanwhile, and a server that fails over may know the one before the other, so both are looked
 *  at again before it is believed.
 *  @throws JournalDamagedError where only the snapshots are still there after `limits.streamMissingMs` */
async function requireNoSnapshots(
  wire: OpeningWire,
  journal: StreamApi,
  wanted: OpeningOptions,
): Promise<StreamReport | undefined> {
  const { signal = new AbortController().signal } = wanted;
  const snapshots = new StreamApi(wire, streamNameOf({ ...wanted, purpose: "snapshots" }));
  const absence = new Endurance(systemClock, limits.streamMissingMs);
  const retry = new Retry({ clock: systemClock, signal }, (listener) => wire.onStatus(listener));
  for (;;) {
    if ((await findStream(wire, snapshots, wanted)) === undefined) return undefined;
    const found = await findStream(wire, journal, wanted);
    if (found !== undefined) return found;
    if (absence.isOver) throw deletedError(journal.stream, snapshots.stream);
    await retry.pause();
  }
}

function deletedError(journal: string, snapshots: string): JournalDamagedError {
  return new JournalDamagedError(
    `the stream ${journal} is gone, and ${snapshots}, which is only made behind it, is still there: somebody deleted the ` +
      `journal, or the server lost its storage. ${adviceOnLostStream(journal)}`,
  );
}

/** What was created, as the server tells it afterwards. */
async function createStream(
  wire: OpeningWire,
  api: StreamApi,
  wanted: OpeningOptions,
): Promise<StreamReport> {
  const choices = bytesMaxChoices(wanted);
  const replicas = wanted.replicas ?? (await replicasOf(wire, wanted));
  for (const bytesMax of choices) {
    const isSmallest = bytesMax === choices.at(-1);
    try {
      await api.create(streamConfigOf({ ...wanted, bytesMax, replicas }));
      break;
    } catch (error) {
      if (!(error instanceof StreamApiError)) throw error;
      // Somebody else created it meanwhile; its settings are checked like any other's.
      if (error.errCode === apiCodes.streamNameInUse) break;
      const mayFitLess = lackOfRoom.has(error.errCode) && !isSmallest;
      if (!mayFitLess) throw createError({ ...wanted, bytesMax, replicas }, error);
    }
  }
  const info = await findStream(wire, api, wanted);
  if (info === undefined) throw settingsError(wanted, [missingStreamCheck(wanted)]);
  return info;
}

const lackOfRoom: ReadonlySet<number> = new Set([
  apiCodes.noStorage,
  apiCodes.noAccountStorage,
  apiCodes.noResources,
]);

/** Snapshots get as many as their journal has: what is left of a purged journal is worth nothing without them. */
async function replicasOf(wire: OpeningWire, wanted: OpeningOptions): Promise<number> {
  if (wanted.purpose === "journal") return 1;
  const name = streamNameOf({ ...wanted, purpose: "journal" });
  const journal = await findStream(wire, new StreamApi(wire, name), wanted);
  return Number(journal?.config["num_replicas"] ?? 1);
}

function createError(wanted: WantedStream, cause: StreamApiError): BrokerError {
  const [bytesMax] = bytesMaxChoices(wanted);
  return new BrokerError(
    `the stream ${streamNameOf(wanted)} of ${bytesMax} bytes and ${wanted.replicas ?? 1} ` +
      `replicas cannot be created. ${cause.message}. If it lacks room or servers, ask for less, or give JetStream ` +
      "more (`max_file_store`)",
    { cause },
  );
}

/** Said by servers that fail over, too: only if it is still said in the end, it is meant. */
function isOff(error: UnreachableError): boolean {
  if (!(error instanceof StreamApiError)) return false;
  return error.errCode === apiCodes.off || error.errCode === apiCodes.offForAccount;
}

function noJetStreamError(cause: unknown): BrokerError {
  return new BrokerError(
    "this NATS server has no JetStream, or not for this account, and the journal needs it; start the server with " +
      "`nats-server -js -sd <folder>`, enable JetStream for the account, or name another server",
    { cause },
  );
}
