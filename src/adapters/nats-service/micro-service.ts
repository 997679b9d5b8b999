// Discovery of a service by any NATS tool: answers `$SRV.PING`, `$SRV.INFO` and `$SRV.STATS`, each also with a name and
// an id, in the shapes of NATS ADR-32. Not here: the requests of the service itself.

import type { Clock } from "../../clock.ts";
import { headOf } from "../../cut-text.ts";
import { limits } from "../../limits.ts";
import { encode } from "../../protocol/codec.ts";
import { discoveryPattern } from "../../protocol/server-subjects.ts";
import { isInbox } from "../../protocol/subjects.ts";
import type { Message, Subscription, Transport } from "../../transport/transport.ts";

/** The part of a transport for discovery. */
export type ServiceWire = Pick<Transport, "publish" | "subscribe">;

export interface Endpoint {
  readonly name: string;
  readonly subject: string;
  /** Absent: every instance gets every request. */
  readonly queueGroup?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly counts: EndpointCounts;
}

export interface MicroServiceOptions {
  readonly wire: ServiceWire;
  readonly clock: Pick<Clock, "now">;
  /** Kind of the service, `[A-Za-z0-9_-]+`. */
  readonly name: string;
  /** Id of this instance, unique; a token of a subject. */
  readonly id: string;
  /** A semantic version. */
  readonly version: string;
  readonly description: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The endpoints at this moment. */
  readonly endpoints: () => readonly Endpoint[];
}

/** Answers until `stop`. A user without the permission for `$SRV.>` is not found, and everything else works. */
export class MicroService {
  readonly #options: MicroServiceOptions;
  readonly #startedAt: number;
  readonly #subscription: Subscription;

  constructor(options: MicroServiceOptions) {
    this.#options = options;
    this.#startedAt = options.clock.now();
    this.#subscription = options.wire.subscribe(discoveryPattern, (message) => this.#take(message));
  }

  stop(): void {
    this.#subscription.unsubscribe();
  }

  #take({ subject, reply }: Message): void {
    if (reply === undefined || !isInbox(reply)) return;
    const [, verb, name, id, ...rest] = subject.split(".");
    const isForOthers = rest.length > 0 || (name ?? this.#options.name) !== this.#options.name;
    if (isForOthers || (id ?? this.#options.id) !== this.#options.id) return;
    const answer = this.#answerTo(verb);
    if (answer !== undefined) this.#options.wire.publish(reply, encode(answer));
  }

  #answerTo(verb: string | undefined): object | undefined {
    const { name, id, version, description, metadata, endpoints } = this.#options;
    const standard = (type: string) => ({ type: `io.nats.micro.v1.${type}`, name, id, version, metadata });
    switch (verb) {
      case "PING":
        return standard("ping_response");
      case "INFO":
        return { ...standard("info_response"), description, endpoints: endpoints().map(describeEndpoint) };
      case "STATS": {
        const started = new Date(this.#startedAt).toISOString();
        return { ...standard("stats_response"), started, endpoints: endpoints().map(measureEndpoint) };
      }
      default:
        return undefined;
    }
  }
}

function describeEndpoint({ name, subject, queueGroup = "", metadata = {} }: Endpoint) {
  return { name, subject, queue_group: queueGroup, metadata };
}

function measureEndpoint({ name, subject, queueGroup = "", counts }: Endpoint) {
  return { name, subject, queue_group: queueGroup, ...counts.stats() };
}

/** Counts of one endpoint since its start. */
export class EndpointCounts {
  #requests = 0;
  #errors = 0;
  #lastError = "";
  #processingMs = 0;

  /** @param processingMs time of the handler, or from the request to its answer */
  served(processingMs: number, error?: string): void {
    this.#requests += 1;
    this.#processingMs += processingMs;
    if (error === undefined) return;
    this.#errors += 1;
    this.#lastError = headOf(error, limits.errorCharactersMax);
  }

  stats() {
    const nanos = Math.round(this.#processingMs * 1e6);
    return {
      num_requests: this.#requests,
      num_errors: this.#errors,
      last_error: this.#lastError,
      processing_time: nanos,
      average_processing_time: this.#requests === 0 ? 0 : Math.trunc(nanos / this.#requests),
    };
  }
}
