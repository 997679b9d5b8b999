// The connection of `waggle serve nats`: requests with a reply, and answers with headers. Transports carry no headers.

import { headers, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { InvalidMessageError, messageOf } from "../../errors.ts";
import { type NatsOptions, openNatsConnection } from "../../transport/nats.ts";
import { isValidPattern } from "../../transport/subject-index.ts";
import type { Message, Subscription } from "../../transport/transport.ts";
import type { ServiceWire } from "./micro-service.ts";
import type { ServiceRequest } from "./serve-kind.ts";

export interface RequestWire extends ServiceWire {
  readonly maxPayloadBytes: number;
  /** Calls `handler` for each message of the queue group. @throws InvalidMessageError for an invalid subject */
  serve(subject: string, queue: string, handler: (request: ServiceRequest) => void): Subscription;
  /** Resolves when the server knows all subscriptions. */
  flush(): Promise<void>;
  /** Resolves when the connection ends for good, with the reason if it was not closed here. */
  readonly closed: Promise<Error | undefined>;
  /** Sends queued answers, then closes. */
  close(): Promise<void>;
}

/** @throws UnreachableError, InvalidConfigError */
export async function openRequestWire(options: NatsOptions): Promise<RequestWire> {
  const connection = await openNatsConnection(options);
  void reportErrors(connection, options);
  return {
    get maxPayloadBytes() {
      return connection.info?.max_payload ?? 0;
    },
    closed: connection.closed().then((reason) => reason ?? undefined),
    flush: () => connection.flush(),
    publish: (subject, data) => connection.publish(subject, data),
    subscribe: (subject, handler) => subscribed(connection, subject, undefined, handler),
    serve: (subject, queue, handler) => {
      if (!isValidPattern(subject))
        throw new InvalidMessageError(`not a subject: ${JSON.stringify(subject)}`);
      return subscribed(connection, subject, queue, (message) => handler(requestOf(message)));
    },
    close: async () => {
      await connection.drain().catch(() => connection.close());
    },
  };
}

async function reportErrors(connection: NatsConnection, { onError }: NatsOptions): Promise<void> {
  for await (const status of connection.status()) if (status.type === "error") onError?.(status.error);
}

function subscribed(
  connection: NatsConnection,
  subject: string,
  queue: string | undefined,
  handler: (message: Msg & Message) => void,
): Subscription {
  const subscription = connection.subscribe(subject, {
    ...(queue === undefined ? {} : { queue }),
    callback: (error, message) => {
      if (error === null) handler(message as Msg & Message); // the status reports errors
    },
  });
  return { unsubscribe: () => subscription.unsubscribe() };
}

function requestOf(message: Msg): ServiceRequest {
  return {
    subject: message.subject,
    data: message.data,
    reply: message.reply === "" ? undefined : message.reply,
    respond: (data, fields) => {
      const given = headers();
      for (const [name, value] of Object.entries(fields)) given.set(name, oneLine(value));
      try {
        message.respond(data, { headers: given });
      } catch (error) {
        throw new InvalidMessageError(`the answer was not sent: ${messageOf(error)}`, { cause: error });
      }
    },
  };
}

/** A header is one line of printable characters. */
function oneLine(text: string): string {
  return text.replace(/[^\x20-\x7e\u00a0-\uffff]+/g, " ").trim();
}
