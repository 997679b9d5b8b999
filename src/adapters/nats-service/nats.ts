// The connection of the adapters over NATS: requests with replies, both ways, and answers with headers. Transports
// carry no headers.

import { createInbox, headers, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { systemClock } from "../../clock.ts";
import {
  ForbiddenError,
  InvalidMessageError,
  messageOf,
  type UnauthorizedError,
  UnreachableError,
} from "../../errors.ts";
import { forbidden } from "../../protocol/forbidden.ts";
import {
  isRefusedLogin,
  type NatsOptions,
  openNatsConnection,
  refusedLoginError,
  violationIn,
} from "../../transport/nats.ts";
import { checkOutgoing } from "../../transport/outgoing.ts";
import { RefusedLogin } from "../../transport/refused-login.ts";
import { isValidPattern } from "../../transport/subject-index.ts";
import type { Message, Subscription, Violation } from "../../transport/transport.ts";
import type { ServiceWire } from "./micro-service.ts";
import type { ServiceRequest } from "./serve-kind.ts";

export interface RequestWire extends ServiceWire {
  readonly maxPayloadBytes: number;
  /** Calls `handler` for each message of the queue group. @throws InvalidMessageError for an invalid subject */
  serve(subject: string, queue: string, handler: (request: ServiceRequest) => void): Subscription;
  /** Publishes a request, and calls `handler` for each message to its inbox until `unsubscribe`.
   *  @param onForbidden called when the server permits no request on the subject, or no answer to the inbox
   *  @throws InvalidMessageError for an invalid subject, or too large a request
   *  @throws UnreachableError while the connection is interrupted: nothing was sent */
  ask(
    subject: string,
    data: Uint8Array,
    handler: (answer: Answer) => void,
    onForbidden: (error: ForbiddenError) => void,
  ): Subscription;
  /** Resolves when the server knows all subscriptions. @throws ForbiddenError when the server permits no requests on a
   *  subject of `serve` */
  flush(): Promise<void>;
  /** Resolves when the connection ends for good. The value is the reason, or undefined after `close`. A server that
   *  refuses credentials after an accepted login gives `UnauthorizedError`. */
  readonly closed: Promise<Error | undefined>;
  /** Sends queued answers, then closes. */
  close(): Promise<void>;
}

/** A message in answer to a request. */
export interface Answer {
  readonly data: Uint8Array;
  readonly hasHeaders: boolean;
  readonly header: (name: string) => string | undefined;
  /** The server's message that nobody listens at the subject. */
  readonly isNoResponders: boolean;
}

/** @throws UnreachableError, InvalidConfigError */
export async function openRequestWire(options: NatsOptions): Promise<RequestWire> {
  const connection = await openNatsConnection(options);
  const line: Line = { isUp: true, endedBy: undefined, asked: new Set() };
  void followStatus(connection, line, options);
  let violation: Violation | undefined;
  const noteViolation = (found: Violation) => {
    violation ??= found;
  };
  return {
    get maxPayloadBytes() {
      return connection.info?.max_payload ?? 0;
    },
    closed: connection.closed().then((reason) => line.endedBy ?? reason ?? undefined),
    flush: async () => {
      await connection.flush();
      if (violation !== undefined) throw forbiddenError(violation);
    },
    publish: (subject, data, reply) =>
      connection.publish(subject, data, reply === undefined ? undefined : { reply }),
    subscribe: (subject, handler, { onForbidden } = {}) =>
      subscribed(connection, subject, { noteViolation: onForbidden }, handler),
    serve: (subject, queue, handler) => {
      if (!isValidPattern(subject))
        throw new InvalidMessageError(`not a subject: ${JSON.stringify(subject)}`);
      return subscribed(connection, subject, { queue, noteViolation }, (message) =>
        handler(requestOf(message)),
      );
    },
    ask: (subject, data, handler, onForbidden) => {
      checkOutgoing(subject, data, connection.info?.max_payload ?? Number.POSITIVE_INFINITY);
      if (!line.isUp) throw new UnreachableError("the connection to the server is interrupted");
      const reply = createInbox(options.inboxPrefix);
      const noteViolation = (found: Violation) => onForbidden(forbiddenError(found));
      const answers = subscribed(connection, reply, { noteViolation }, (message) =>
        handler(answerOf(message)),
      );
      const asked = { subject, noteViolation };
      line.asked.add(asked);
      connection.publish(subject, data, { reply });
      return {
        unsubscribe: () => {
          line.asked.delete(asked);
          answers.unsubscribe();
        },
      };
    },
    close: async () => {
      if (!line.isUp) return await connection.close(); // a drain would wait for the server
      await connection.drain().catch(() => connection.close());
    },
  };
}

interface Line {
  isUp: boolean;
  endedBy: UnauthorizedError | undefined;
  /** Open requests: the server reports a forbidden request by its subject alone. */
  readonly asked: Set<{ readonly subject: string; readonly noteViolation: (found: Violation) => void }>;
}

function forbiddenError(violation: Violation): ForbiddenError {
  return new ForbiddenError(forbidden(violation).message);
}

function noteForbiddenRequest(line: Line, violation: Violation | undefined): void {
  if (violation?.operation !== "publish") return;
  for (const { subject, noteViolation } of [...line.asked])
    if (subject === violation.subject) noteViolation(violation);
}

async function followStatus(connection: NatsConnection, line: Line, options: NatsOptions): Promise<void> {
  const login = new RefusedLogin(() => systemClock.monotonicMs());
  for await (const status of connection.status()) {
    switch (status.type) {
      case "error":
        options.onError?.(status.error);
        noteForbiddenRequest(line, violationIn(status.error));
        if (isRefusedLogin(status.error) && login.refused()) {
          line.endedBy ??= refusedLoginError(options, status.error);
          void connection.close();
        }
        break;
      case "disconnect":
        line.isUp = false;
        break;
      case "reconnect":
        line.isUp = true;
        login.accepted();
        break;
      default:
        break; // pings, cluster changes and similar events
    }
  }
  line.isUp = false;
}

function answerOf({ data, headers: fields }: Msg): Answer {
  return {
    data,
    hasHeaders: fields !== undefined,
    header: (name) => (fields?.has(name) === true ? fields.get(name) : undefined),
    isNoResponders: data.length === 0 && fields?.code === 503,
  };
}

function subscribed(
  connection: NatsConnection,
  subject: string,
  {
    queue,
    noteViolation,
  }: { readonly queue?: string; readonly noteViolation?: ((violation: Violation) => void) | undefined },
  handler: (message: Msg & Message) => void,
): Subscription {
  const subscription = connection.subscribe(subject, {
    ...(queue === undefined ? {} : { queue }),
    callback: (error, message) => {
      if (error === null) return handler(message as Msg & Message);
      const violation = violationIn(error); // the status reports all errors
      if (violation !== undefined) noteViolation?.(violation);
    },
  });
  return { unsubscribe: () => subscription.unsubscribe() };
}

function requestOf(message: Msg): ServiceRequest {
  return {
    subject: message.subject,
    data: message.data,
    reply: message.reply === "" ? undefined : message.reply,
    header: (name) => (message.headers?.has(name) === true ? message.headers.get(name) : undefined),
    respond: (data, fields = {}) => {
      const given = headers();
      for (const [name, value] of Object.entries(fields)) given.set(name, oneLine(value));
      try {
        message.respond(data, Object.keys(fields).length === 0 ? undefined : { headers: given });
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
