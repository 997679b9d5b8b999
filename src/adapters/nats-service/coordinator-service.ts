// A coordinator as a NATS service: any tool of NATS finds it, its subjects and its load. Requests are counted where
// they are received: the coordinator itself knows nothing of this.

import type { Clock } from "../../clock.ts";
import type { SwarmId } from "../../ids.ts";
import { subjectsOf } from "../../protocol/subjects.ts";
import type { Message, SubscribeOptions, Transport } from "../../transport/transport.ts";
import { type Endpoint, EndpointCounts, MicroService } from "./micro-service.ts";

export interface CoordinatorServiceOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly swarm: SwarmId;
  /** The coordinator's id. */
  readonly id: string;
  readonly version: string;
}

/** Name of the service of every coordinator. */
export const COORDINATOR_SERVICE = "waggle";

export interface CoordinatorService {
  /** The coordinator's transport, which counts requests. */
  readonly transport: Transport;
  stop(): void;
}

/** Answers discovery at once; endpoints are listed while the coordinator is subscribed to them. */
export function serveCoordinator(options: CoordinatorServiceOptions): CoordinatorService {
  const { transport, clock, swarm, id, version } = options;
  const { prefix, queryPattern, leaderPatterns } = subjectsOf(swarm);
  const counted = new Map<string, CountedEndpoint>();
  for (const subject of [queryPattern, ...leaderPatterns]) {
    const name = subject
      .slice(prefix.length + 1)
      .split(".")
      .filter((token) => token !== "*")
      .join("-");
    counted.set(subject, { endpoint: { name, subject, counts: new EndpointCounts() }, open: 0 });
  }
  const service = new MicroService({
    ...{ wire: transport, clock, name: COORDINATOR_SERVICE, id, version },
    description: `A coordinator of the swarm ${swarm}. It leads while it lists more than its queries.`,
    metadata: { swarm },
    endpoints: () => [...counted.values()].filter(({ open }) => open > 0).map(({ endpoint }) => endpoint),
  });
  return { transport: countRequests(transport, counted, clock), stop: () => service.stop() };
}

interface CountedEndpoint {
  readonly endpoint: Endpoint;
  /** Subscriptions of the coordinator. */
  open: number;
}

/** The same transport, except for subscriptions to the endpoints. */
function countRequests(
  transport: Transport,
  counted: ReadonlyMap<string, CountedEndpoint>,
  clock: Clock,
): Transport {
  return {
    get inboxPrefix() {
      return transport.inboxPrefix;
    },
    get maxPayloadBytes() {
      return transport.maxPayloadBytes;
    },
    publish: (subject, data, reply) => transport.publish(subject, data, reply),
    request: (subject, data, options) => transport.request(subject, data, options),
    onStatus: (listener) => transport.onStatus(listener),
    status: () => transport.status(),
    flush: () => transport.flush(),
    close: () => transport.close(),
    subscribe: (subject: string, handler: (message: Message) => void, options?: SubscribeOptions) => {
      const of = counted.get(subject);
      if (of === undefined) return transport.subscribe(subject, handler, options);
      const { counts } = of.endpoint;
      const timed = (message: Message) => {
        const startedAt = clock.monotonicMs();
        handler(message);
        counts.served(clock.monotonicMs() - startedAt);
      };
      const subscription = transport.subscribe(subject, timed, options);
      of.open += 1;
      let isOpen = true;
      return {
        unsubscribe: () => {
          if (isOpen) of.open -= 1;
          isOpen = false;
          subscription.unsubscribe();
        },
      };
    },
  };
}
