// A journal to be read, whether coordinators run or not: the swarm's, a folder, or a file of `waggle export`.

import { open, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Aborts } from "../abort.ts";
import { isExport, openExport } from "../audit/export.ts";
import { journalFolder } from "../broker/data-folder.ts";
import { findBroker } from "../broker/find-broker.ts";
import { AskedJournal } from "../client/asked-journal.ts";
import { Asker } from "../client/asker.ts";
import { systemClock, systemRandom } from "../clock.ts";
import { wantedRoom } from "../coordinator/compacting/kept-room.ts";
import { ForbiddenError } from "../errors.ts";
import { swarmId } from "../ids.ts";
import { listSegments, openFileJournalReader } from "../journal/file/reader.ts";
import type { JournalReader } from "../journal/journal.ts";
import { openNatsJournal } from "../journal/nats.ts";
import { Horizon } from "../protocol/horizon.ts";
import { subjectsOf } from "../protocol/subjects.ts";
import { connectNats, type NatsOptions } from "../transport/nats.ts";
import { connectionOf } from "./connection.ts";
import { fileError } from "./file-error.ts";
import { isInFiles } from "./stopped-journal.ts";
import { UsageError } from "./usage-error.ts";
import type { VerbContext } from "./verb.ts";

export interface ReadableJournal {
  readonly reader: JournalReader;
  /** For people: `in /srv/.waggle/journals/default`, `on nats://127.0.0.1:4222`. */
  readonly where: string;
}

const HEAD_BYTES = 64;

/** For submitters and owners of `waggle auth`. */
const oneProjectOnly =
  "this user may ask about one project, and the journal has all (projectOnly in waggle.config.json). Use an auditor's " +
  "credential, or a file exported with an auditor's credential (`waggle export`)";

/** @param target a folder or a file; undefined: the swarm's journal
 *  @throws UsageError without a journal; UnreachableError, BrokerError, JournalDamagedError, DamagedExportError */
export async function openJournal(
  context: VerbContext,
  target: string | undefined,
): Promise<ReadableJournal> {
  if (target !== undefined) return await openPath(resolve(context.shell.cwd, target), context);
  return isInFiles(context) ? await openFolder(journalFolder(context.settings)) : await openStreams(context);
}

async function openPath(path: string, { settings }: VerbContext): Promise<ReadableJournal> {
  const kind = await stat(path).catch((error: unknown) => {
    const { message } = fileError("read", path, error);
    const remedy = "name a journal's folder, a data folder, or a file of `waggle export`";
    throw new UsageError(`${message}: ${remedy}`, { cause: error });
  });
  if (!kind.isDirectory()) return await openFile(path);
  for (const folder of [path, join(path, "journals", settings.swarm)])
    if ((await listSegments(folder)) !== undefined) return await openFolder(folder);
  throw new UsageError(
    `no journal in ${path}: name a journal's folder, such as .waggle/journals/default, or a data folder`,
  );
}

async function openFile(path: string): Promise<ReadableJournal> {
  const head = await headOf(path).catch((error: unknown) => {
    throw fileError("read", path, error);
  });
  if (isExport(head)) return { reader: await openExport(path), where: `in ${path}` };
  throw new UsageError(`${path} is no export of a journal: \`waggle export\` writes one`);
}

async function headOf(path: string): Promise<string> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}

async function openFolder(folder: string): Promise<ReadableJournal> {
  if ((await listSegments(folder)) === undefined)
    throw new UsageError(
      `no journal in ${folder}: give the journal's --data-folder and --swarm, its --nats, or the folder itself`,
      { field: "dataFolder" },
    );
  return { reader: await openFileJournalReader(folder), where: `in ${folder}` };
}

/** From the answers of coordinators, for users that may not read the streams. */
async function openAsked(
  connection: NatsOptions,
  { settings, signal }: VerbContext,
): Promise<ReadableJournal> {
  const transport = await connectNats(connection);
  const asker = new Asker({
    ...{ transport, clock: systemClock, random: systemRandom },
    ...{ horizon: new Horizon(systemClock), aborts: new Aborts() },
  });
  const subjects = subjectsOf(swarmId(settings.swarm));
  const reader = new AskedJournal({ asker, subjects, signal, onClose: () => transport.close() });
  return { reader, where: `as the coordinators on ${connection.urls.join(",")} answer` };
}

async function openStreams(context: VerbContext): Promise<ReadableJournal> {
  const { settings, shell } = context;
  if (settings.projectOnly) throw new ForbiddenError(oneProjectOnly);
  const broker = await findBroker({ mode: "find-only", ...settings, env: shell.env });
  const connection = connectionOf(broker, context, "waggle journal");
  if (settings.queriesOnly) return await openAsked(connection, context);
  const bytesMax = wantedRoom(settings.retention.bytes);
  const swarm = swarmId(settings.swarm);
  const reader = await openNatsJournal({ connection, swarm, bytesMax, signal: context.signal });
  return { reader, where: `on ${connection.urls.join(",")}` };
}
