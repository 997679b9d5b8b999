// `.waggle/broker.json`: how every verb, and agents in other languages, find the broker of a data folder.
// It outlives the broker: the next one takes the same port and secret, so that agents reconnect by themselves.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { BrokerError } from "../errors.ts";
import { type DataFolder, writePrivately } from "./data-folder.ts";

const brokerRecordSchema = z.object({
  kind: z.enum(["nats-server", "development"]),
  /** `nats://127.0.0.1:<port>` */
  url: z.string().regex(/^nats:\/\/127\.0\.0\.1:\d+$/),
  /** What clients send as `auth_token`. */
  secret: z.string().min(1),
  /** Null: it was stopped, or never ran. One that was killed keeps its number; who misses it starts it again. */
  pid: z.number().int().positive().nullable(),
  version: z.string(),
  /** Where JetStream keeps its streams; null without JetStream. */
  storeDir: z.string().nullable(),
});

export type BrokerRecord = Readonly<z.infer<typeof brokerRecordSchema>>;
export type BrokerKind = BrokerRecord["kind"];

/** @throws BrokerError when there is a file that is not a record */
export function readRecord(folder: DataFolder): BrokerRecord | undefined {
  const text = readIfThere(folder.record);
  if (text === undefined) return undefined;
  const parsed = brokerRecordSchema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new BrokerError(
    `${folder.record} does not describe a broker. If none runs for this folder, delete the file and run \`waggle up\`.`,
  );
}

export function writeRecord(folder: DataFolder, record: BrokerRecord): void {
  writePrivately(folder.record, `${JSON.stringify(record, null, 2)}\n`);
}

export function portOf({ url }: BrokerRecord): number {
  return Number(url.slice(url.lastIndexOf(":") + 1));
}

/** How a broker calls itself in INFO, so that whoever asks at its port knows it before showing the secret. */
export function serverNameFor(secret: string): string {
  return `waggle-${createHash("sha256").update(secret).digest("hex").slice(0, 16)}`;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new BrokerError(`cannot read ${file}: it belongs to whoever started the broker`, { cause });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // refused by the schema, which says what to do
  }
}
