// What a NATS user would write by hand: a durable work-queue stream in files, a shared pull consumer with explicit
// acknowledgements, and the result on the client's own inbox. No scores, no limit of retries, no recorded outcome.

import { AckPolicy, jetstream, jetstreamManager, RetentionPolicy } from "@nats-io/jetstream";
import { connectTo } from "./bare.ts";
import type { Client, PeerConfig } from "./peer.ts";
import { waiters } from "./waiters.ts";

export async function setup(config: PeerConfig): Promise<void> {
  const connection = await connectTo(config);
  const manager = await jetstreamManager(connection);
  await manager.streams.add({
    name: "TASKS",
    subjects: ["tasks.*.*"],
    storage: "file",
    retention: RetentionPolicy.Workqueue,
    num_replicas: config.replicas ?? 1,
  });
  await manager.consumers.add("TASKS", {
    durable_name: "workers",
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: 20_000,
  });
  await connection.close();
}

export async function worker(config: PeerConfig): Promise<void> {
  const connection = await connectTo(config);
  const consumer = await jetstream(connection).consumers.get("TASKS", "workers");
  await consumer.consume({
    max_messages: config.prefetch ?? 1000,
    callback: (message) => {
      connection.publish(`done.${message.subject.slice("tasks.".length)}`, "ok");
      message.ack();
    },
  });
  await connection.flush();
}

export async function client(config: PeerConfig): Promise<Client> {
  const connection = await connectTo(config);
  const stream = jetstream(connection);
  const own = Math.random().toString(36).slice(2);
  const { open, end } = waiters();
  const done = `done.${own}.`;
  connection.subscribe(`${done}*`, { callback: (_, { subject }) => end(subject.slice(done.length)) });
  await connection.flush();
  const submit = (payload: string) => {
    const { id, ended } = open();
    return { accepted: stream.publish(`tasks.${own}.${id}`, payload, { timeout: 30_000 }), ended };
  };
  return {
    one: async (payload) => {
      const { accepted, ended } = submit(payload);
      await accepted;
      await ended;
    },
    burst: async (tasks, payload) => {
      const submitted = Array.from({ length: tasks }, () => submit(payload));
      await Promise.all(submitted.map(({ accepted }) => accepted));
      const acceptedAt = performance.now();
      await Promise.all(submitted.map(({ ended }) => ended));
      return acceptedAt;
    },
  };
}
