// `.waggle/broker.json`: tells the CLI, and agents in any language, where the broker of a data folder is. The
// record outlives the broker: the next broker takes the same port and secret, so that agents reconnect
// automatically.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import * as z from "zod";
import { BrokerError } from "../errors.ts";
import type { ServerCredentials } from "../transport/server-address.ts";
import { type DataFolder, writePrivately } from "./data-folder.ts";

const brokerRecordSchema = z.object({
  kind: z.enum(["nats-server", "development"]),
  /** `nats://127.0.0.1:<port>` */
  url: z.string().regex(/^nats:\/\/127\.0\.0\.1:\d+$/),
  /** Secret that clients of the development broker prove to have, and password of the nats-server's user. */
  secret: z.string().min(1),
  /** Process id. Null when the broker was stopped or never ran. A killed broker keeps its id, and coordinators
   *  restart it. */
  pid: z.number().int().positive().nullable(),
  version: z.string(),
  /** JetStream's storage folder; null without JetStream. */
  storeDir: z.string().nullable(),
});

export type BrokerRecord = Readonly<z.infer<typeof brokerRecordSchema>>;
export type BrokerKind = BrokerRecord["kind"];

/** @throws BrokerError when the file exists and is not a record */
export function readRecord(folder: DataFolder): BrokerRecord | undefined {
  const text = readIfThere(folder.record);
  if (text === undefined) return undefined;
  const parsed = brokerRecordSchema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new BrokerError(
    `${folder.record} does not describe a broker. If no broker runs for this folder, delete the file and run \`waggle up\`.`,
  );
}

export function writeRecord(folder: DataFolder, record: BrokerRecord): void {
  writePrivately(folder.record, `${JSON.stringify(record, null, 2)}\n`);
}

export function portOf({ url }: BrokerRecord): number {
  return Number(url.slice(url.lastIndexOf(":") + 1));
}

/** How this user's programs log in. Nothing secret travels. */
export function credentialsFor(folder: DataFolder, { kind, secret }: BrokerRecord): ServerCredentials {
  if (kind === "nats-server") return { kind: "nkey-file", file: folder.userKey };
  return { kind: "secret", secret };
}

/** User of a spawned nats-server, with the secret as password: for clients without keys (nkeys). */
export const PASSWORD_USER = "waggle";

/** The broker's name in INFO, so that clients recognise the broker before showing the secret. */
export function serverNameFor(secret: string): string {
  return `waggle-${createHash("sha256").update(secret).digest("hex").slice(0, 16)}`;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new BrokerError(`cannot read ${file}: only the broker's user may read the file`, {
      cause,
    });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // refused by the schema, with advice
  }
}
