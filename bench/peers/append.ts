// One append to JetStream at a time, with the expected last sequence: a step of a task's physical path. Plain requests,
// as Waggle's own (docs/adr/0007-jetstream-by-its-own-requests.md). Has no workers: only the case C = 1 uses it.

import { headers, type NatsConnection } from "@nats-io/transport-node";
import { connectTo } from "./bare.ts";
import type { Client, PeerConfig } from "./peer.ts";

/** About the size of a batch with one submission and one assignment. */
const batchBytes = 600;
const timeoutMs = 30_000;

export async function setup(config: PeerConfig): Promise<void> {
  const connection = await connectTo(config);
  const stream = {
    name: "APPEND",
    subjects: ["append"],
    storage: "file",
    num_replicas: config.replicas ?? 1,
  };
  await request(connection, "$JS.API.STREAM.CREATE.APPEND", JSON.stringify(stream));
  await connection.close();
}

export async function client(config: PeerConfig): Promise<Client> {
  const connection = await connectTo(config);
  const batch = "y".repeat(batchBytes);
  let last = 0;
  return {
    one: async () => {
      const expected = headers();
      expected.set("Nats-Expected-Last-Sequence", String(last));
      ({ seq: last } = await request(connection, "append", batch, expected));
    },
  };
}

interface Answer {
  readonly seq: number;
  readonly error?: { readonly description: string };
}

/** @throws Error with the server's description */
async function request(
  connection: NatsConnection,
  subject: string,
  message: string,
  withHeaders = headers(),
): Promise<Answer> {
  const answer = await connection.request(subject, message, { timeout: timeoutMs, headers: withHeaders });
  const found = answer.json<Answer>();
  if (found.error !== undefined) throw new Error(`${subject}: ${found.error.description}`);
  return found;
}
