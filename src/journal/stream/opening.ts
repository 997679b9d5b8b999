// Finds or creates a swarm's stream on a server, and reads its settings back. Waits a while for servers that fail over.
// Not here: the connection (nats.ts), and what the settings must be (settings.ts).
//
// The rule: of a swarm's two streams the journal is created first, the snapshots' second, and neither is ever removed
// once it was used. So a journal without snapshots is one whose first start died between the two, and is taken; and
// snapshots without a journal, be they empty, say that the journal was deleted: nobody makes a new one in its place.
// The other way round a first start that died would look like a loss, or a loss like it. For that reason, too, who uses
// snapshots whose stream is gone makes it anew only while their journal is there.

import { systemClock } from "../../clock.ts";
import { Endurance } from "../../endurance.ts";
import { BrokerError, JournalDamagedError, UnreachableError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { Retry } from "../retry.ts";
import { apiCodes, isStreamMissing, StreamApi, StreamApiError, type StreamReport } from "./api.ts";
import { adviceOnLostStream } from "./identity.ts";
import {
  bytesMaxChoices,
  checkMaxPayload,
  checkStreamSettings,
  missingStreamCheck,
  settingsError,
  streamConfigOf,
  streamNameOf,
  type WantedStream,
} from "./settings.ts";
import type { StreamWire } from "./wire.ts";

export interface OpeningWire extends StreamWire {
  /** A server of a cluster may pass questions on to one that has JetStream. */
  readonly mayHaveJetStream: boolean;
}

export interface OpeningOptions extends WantedStream {
  /** Whether to create the stream if it is missing: coordinators do, readers do not. */
  readonly create: boolean;
  readonly signal?: AbortSignal;
}

export interface OpenedStream extends StreamReport {
  /** Whether this call created it. */
  readonly isNew: boolean;
}

/** @throws UnreachableError; BrokerError where JetStream is off or the stream cannot be created;
 *  WaggleError WAGGLE_JOURNAL_SETTINGS where the stream is missing or not what it must be;
 *  JournalDamagedError where a journal is to be created beside snapshots of one */
export async function openStream(wire: OpeningWire, wanted: OpeningOptions): Promise<OpenedStream> {
  const api = new StreamApi(wire, streamNameOf(wanted));
  let found = await findStream(wire, api, wanted);
  if (found === undefined && !wanted.create) throw settingsError(wanted, [missingStreamCheck(wanted)]);
  if (wanted.purpose === "journal") found ??= await requireNoSnapshots(wire, api, wanted);
  const report = found ?? (await createStream(wire, api, wanted));
  const checks = [...checkStreamSettings(report.config, wanted), checkMaxPayload(wire.maxPayloadBytes)];
  const wrong = checks.filter(({ ok }) => !ok);
  if (wrong.length > 0) throw settingsError(wanted, wrong);
  return { isNew: false, ...report };
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
      if (isStreamMissing(error)) return undefined;
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
    if (absence.isBelieved()) throw deletedError(journal.stream, snapshots.stream);
    await retry.pause();
  }
}

/** Makes the stream of snapshots anew, which is gone while they are used, unless their journal is gone as well.
 *  @throws as `openStream` */
export async function recreateSnapshots(wire: OpeningWire, wanted: OpeningOptions): Promise<void> {
  const journal = new StreamApi(wire, streamNameOf({ ...wanted, purpose: "journal" }));
  if ((await findStream(wire, journal, wanted)) !== undefined) await openStream(wire, wanted);
}

function deletedError(journal: string, snapshots: string): JournalDamagedError {
  return new JournalDamagedError(
    `the stream ${journal} is gone, and ${snapshots}, which is only made behind it, is still there: somebody deleted the ` +
      `journal, or the server lost its storage. ${adviceOnLostStream(journal)}`,
  );
}

/** Removes a journal that the caller created and for which there is no room for snapshots, unless somebody used it: who
 *  appends has the snapshots' stream, and was silent for a leader's time-out since. @throws UnreachableError */
export async function removeUnusedJournal(
  wire: OpeningWire,
  { swarm }: Pick<OpeningOptions, "swarm">,
): Promise<void> {
  const [journal, snapshots] = (["journal", "snapshots"] as const).map(
    (purpose) => new StreamApi(wire, streamNameOf({ swarm, purpose })),
  ) as [StreamApi, StreamApi];
  if ((await findStream(wire, snapshots, {})) !== undefined) return;
  if ((await findStream(wire, journal, {}))?.lastSeq === 0) await journal.remove();
}

/** What was created, as the server tells it afterwards. */
async function createStream(
  wire: OpeningWire,
  api: StreamApi,
  wanted: OpeningOptions,
): Promise<OpenedStream> {
  const replicas = wanted.replicas ?? (await replicasOf(wire, wanted));
  for (;;) {
    const refusal = await createAsFits(api, { ...wanted, replicas });
    if (refusal === undefined || madeMeanwhile.has(refusal.errCode)) {
      const info = await findStream(wire, api, wanted);
      if (info !== undefined) return { ...info, isNew: refusal === undefined };
      if (refusal?.errCode === apiCodes.subjectsOverlap) throw createError({ ...wanted, replicas }, refusal);
      throw settingsError(wanted, [missingStreamCheck(wanted)]);
    }
    const mayFit = lackOfRoom.has(refusal.errCode) && (await shrinkJournal(wire, wanted));
    if (!mayFit) throw createError({ ...wanted, replicas }, refusal);
  }
}

/** @returns why not even the smallest was created; where somebody else did it meanwhile, that. His settings are checked
 *  like any other's. @throws UnreachableError */
async function createAsFits(api: StreamApi, wanted: WantedStream): Promise<StreamApiError | undefined> {
  let refusal: StreamApiError | undefined;
  for (const bytesMax of bytesMaxChoices(wanted)) {
    try {
      await api.create(streamConfigOf({ ...wanted, bytesMax }));
      return undefined;
    } catch (error) {
      if (!(error instanceof StreamApiError)) throw error;
      refusal = error;
      if (!lackOfRoom.has(error.errCode)) break;
    }
  }
  return refusal;
}

/** A journal takes what room there is before its snapshots come. While it is empty, and as large as one is made
 *  unasked, it gives them some back. @returns whether it did @throws UnreachableError */
async function shrinkJournal(wire: OpeningWire, wanted: OpeningOptions): Promise<boolean> {
  if (wanted.purpose === "journal" || wanted.bytesMax !== undefined) return false;
  const id = { ...wanted, purpose: "journal" } as const;
  const api = new StreamApi(wire, streamNameOf(id));
  const journal = await findStream(wire, api, wanted);
  if (journal === undefined || journal.lastSeq > 0) return false;
  const choices = bytesMaxChoices(id);
  const at = choices.indexOf(Number(journal.config["max_bytes"]));
  const bytesMax = at === -1 ? undefined : choices[at + 1];
  if (bytesMax === undefined) return false;
  await api.update({ ...journal.config, max_bytes: bytesMax });
  return true;
}

/** Of a stream that somebody else has just made. 2.9.10 may say so of its subjects before it does of its name; or they
 *  are another stream's. */
const madeMeanwhile: ReadonlySet<number> = new Set([apiCodes.streamNameInUse, apiCodes.subjectsOverlap]);

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
  const smallest = (id: WantedStream) => bytesMaxChoices(id).at(-1) ?? 0;
  const { swarm, bytesMax } = wanted;
  const least = smallest({ swarm, purpose: "journal" }) + smallest({ swarm, purpose: "snapshots" });
  const both = bytesMax === undefined ? ` A swarm's two streams need ${least} bytes at least.` : "";
  return new BrokerError(
    `the stream ${streamNameOf(wanted)} of ${smallest(wanted)} bytes and ${wanted.replicas ?? 1} replicas cannot be ` +
      `created. ${cause.message}.${both} If it lacks room or servers, ask for less, or give JetStream more ` +
      "(`max_file_store`, or the account's quota)",
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
