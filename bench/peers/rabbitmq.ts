// RabbitMQ: a durable classic queue of version 2, persistent messages, publisher confirms, results by direct reply-to.
// Workers acknowledge several messages at once. The prefetch is within the range of RabbitMQ's page on confirms (100 to
// 300).

import { connect } from "amqplib";
import type { Client, PeerConfig } from "./peer.ts";
import { waiters } from "./waiters.ts";

const replies = "amq.rabbitmq.reply-to";
const queue = "noop";

function queueOptions({ queueVersion }: PeerConfig) {
  return {
    durable: true,
    ...(queueVersion === undefined ? {} : { arguments: { "x-queue-version": queueVersion } }),
  };
}

export async function worker(config: PeerConfig): Promise<void> {
  const connection = await connect(config.url ?? "", { noDelay: true });
  const channel = await connection.createChannel();
  await channel.assertQueue(queue, queueOptions(config));
  await channel.prefetch(config.prefetch ?? 300);
  const ok = Buffer.from("ok");
  let last: Parameters<typeof channel.ack>[0] | undefined;
  await channel.consume(queue, (message) => {
    if (message === null) return;
    channel.sendToQueue(message.properties.replyTo, ok, { correlationId: message.properties.correlationId });
    if (last === undefined)
      setImmediate(() => {
        if (last !== undefined) channel.ack(last, true);
        last = undefined;
      });
    last = message;
  });
}

export async function client(config: PeerConfig): Promise<Client> {
  const connection = await connect(config.url ?? "", { noDelay: true });
  const channel = await connection.createConfirmChannel();
  await channel.assertQueue(queue, queueOptions(config));
  const { open, end } = waiters();
  await channel.consume(replies, (message) => end(message?.properties.correlationId), { noAck: true });
  const submit = (payload: string): Promise<void> => {
    const { id, ended } = open();
    const options = { persistent: true, replyTo: replies, correlationId: id };
    channel.sendToQueue(queue, Buffer.from(payload), options, () => undefined);
    return ended;
  };
  return {
    one: submit,
    burst: async (tasks, payload) => {
      const ended = Array.from({ length: tasks }, () => submit(payload));
      await channel.waitForConfirms();
      const acceptedAt = performance.now();
      await Promise.all(ended);
      return acceptedAt;
    },
  };
}
