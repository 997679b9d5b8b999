// The journal of a swarm: to be read, and then perhaps to be written. Refuses to write while a coordinator runs.

import { rename } from "node:fs/promises";
import { readRecord } from "../broker/broker-record.ts";
import { findDataFolder, journalFolder } from "../broker/data-folder.ts";
import { findBroker } from "../broker/find-broker.ts";
import { wantedRoom } from "../coordinator/compacting/kept-room.ts";
import { ForbiddenError, UnreachableError, WaggleError } from "../errors.ts";
import { NO_PROJECT, swarmId } from "../ids.ts";
import { lockFolder } from "../journal/file/folder-lock.ts";
import { listSegments, openFileJournalReader, segmentFolder } from "../journal/file/reader.ts";
import { openFileJournal } from "../journal/file.ts";
import type { Journal, JournalReader } from "../journal/journal.ts";
import { openNatsJournal } from "../journal/nats.ts";
import type { SalvagedSegment } from "../journal/salvage.ts";
import { limits } from "../limits.ts";
import { encode } from "../protocol/codec.ts";
import { forbidden } from "../protocol/forbidden.ts";
import { subjectsOf } from "../protocol/subjects.ts";
import { connectNats } from "../transport/nats.ts";
import { connectionOf } from "./connection.ts";
import { UsageError } from "./usage-error.ts";
import type { VerbContext } from "./verb.ts";

export interface StoppedJournal {
  readonly reader: JournalReader;
  /** For people: a clause such as `in /srv/.waggle/journals/default`. */
  readonly where: string;
  /** @param segments as read @returns the segments that can be sealed. @throws as `openStoppedJournal` */
  openToWrite(
    segments: readonly SalvagedSegment[],
  ): Promise<{ readonly journal: Journal; readonly sealed: readonly number[] }>;
  /** Idempotent. */
  close(): Promise<void>;
}

/** @param options whether the journal may be written: then no coordinator may run
 *  @throws WaggleError WAGGLE_JOURNAL_LOCKED when a coordinator runs, WAGGLE_JOURNAL_SETTINGS; UnreachableError,
 *  BrokerError; UsageError when there is no journal */
export async function openStoppedJournal(
  context: VerbContext,
  options: { readonly writes: boolean },
): Promise<StoppedJournal> {
  return isInFiles(context) ? await openFolder(context, options) : await openStreams(context, options);
}

/** Whether the data folder's broker keeps the journal in files, or nothing else is known. */
export function isInFiles({ settings }: VerbContext): boolean {
  if (settings.nats !== undefined || settings.natsContext !== undefined) return false;
  const folder = findDataFolder(settings.dataFolder);
  const record = folder === undefined ? undefined : readRecord(folder);
  return record === undefined || record.kind === "development";
}

// --- in files ---------------------------------------------------------------------------------------

async function openFolder(
  { settings }: VerbContext,
  { writes }: { readonly writes: boolean },
): Promise<StoppedJournal> {
  const folder = journalFolder(settings);
  if ((await listSegments(folder)) === undefined)
    throw new UsageError(
      `no journal in ${folder}: give the journal's --data-folder and --swarm, or its --nats`,
      {
        field: "dataFolder",
      },
    );
  const reader = await openFileJournalReader(folder);
  let lock: { release(): Promise<void> } | undefined = writes ? await lockFolder(folder) : undefined;
  let journal: Journal | undefined;
  const release = async () => {
    await lock?.release();
    lock = undefined;
  };
  return {
    reader,
    where: `in ${folder}`,
    openToWrite: async (segments) => {
      const unreadable = segments.filter(
        ({ lastPosition, damage }) => lastPosition === 0 && damage !== undefined,
      );
      for (const { number } of unreadable) await setAside(segmentFolder(folder, number));
      await release();
      journal = await openFileJournal({ folder, bytesMax: wantedRoom(settings.retention.bytes) });
      return { journal, sealed: await journal.list() };
    },
    close: async () => {
      await journal?.close();
      await release();
      await reader.close();
    },
  };
}

/** A file with an invalid beginning prevents the journal from opening. */
async function setAside(folder: string): Promise<void> {
  await rename(folder, `${folder}.unreadable`);
}

// --- in JetStream -----------------------------------------------------------------------------------

async function openStreams(
  context: VerbContext,
  { writes }: { readonly writes: boolean },
): Promise<StoppedJournal> {
  const { settings, shell } = context;
  const broker = await findBroker({ mode: "find-only", ...settings, env: shell.env });
  const connection = connectionOf(broker, context, "waggle journal recover");
  if (writes) await requireNoCoordinator(context, connection);
  const swarm = swarmId(settings.swarm);
  const bytesMax = wantedRoom(settings.retention.bytes);
  const journal = await openNatsJournal({ connection, swarm, bytesMax, signal: context.signal });
  return {
    reader: journal,
    where: "on this server",
    openToWrite: async (segments) => {
      await requireNoCoordinator(context, connection);
      return { journal, sealed: segments.map(({ number }) => number) };
    },
    close: () => journal.close(),
  };
}

/** Every coordinator, standbys included, listens for queries. */
async function requireNoCoordinator(
  { settings }: VerbContext,
  connection: Parameters<typeof connectNats>[0],
): Promise<void> {
  const transport = await connectNats(connection);
  try {
    const subject = subjectsOf(swarmId(settings.swarm)).query(NO_PROJECT, "status");
    const timeoutMs = limits.leaderLookMs;
    const outcome = await transport.request(subject, encode({ v: 1 }), { timeoutMs });
    if (outcome.kind === "no-responders") return;
    if (outcome.kind === "forbidden") throw new ForbiddenError(forbidden(outcome).message);
    if (outcome.kind === "disconnected") throw new UnreachableError("the connection to the server was lost");
  } finally {
    await transport.close();
  }
  throw new WaggleError(
    "WAGGLE_JOURNAL_LOCKED",
    `a coordinator of the swarm ${settings.swarm} runs on this server: stop all coordinators first. A running coordinator may hold what the ` +
      "journal lost, and continues by itself",
  );
}
