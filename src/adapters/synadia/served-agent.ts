// The registration of a served kind as an agent: its NATS service, its heartbeats, and the endpoints `prompt` and
// `status`.

import type { Clock } from "../../clock.ts";
import { limits } from "../../limits.ts";
import { AGENTS_SERVICE } from "../../protocol/service-permissions.ts";
import { EndpointCounts, MicroService } from "../nats-service/micro-service.ts";
import type { RequestWire } from "../nats-service/nats.ts";
import type { ServiceRequest } from "../nats-service/serve-kind.ts";
import { PROTOCOL_VERSION, writeHeartbeat } from "./messages.ts";

export interface ServedAgentOptions {
  readonly wire: RequestWire;
  readonly clock: Clock;
  /** Id of this instance, unique; a token of a subject. */
  readonly id: string;
  readonly version: string;
  readonly swarm: string;
  readonly kind: string;
  /** Tokens of the subjects. */
  readonly owner: string;
  readonly name: string;
  readonly counts: EndpointCounts;
  readonly onPrompt: (request: ServiceRequest) => void;
}

const AGENT = "waggle";

export interface ServedAgent {
  readonly promptSubject: string;
  /** Takes no more prompts, and is no longer found. */
  stop(): void;
}

export function serveAgent(options: ServedAgentOptions): ServedAgent {
  const { wire, clock, id, version, swarm, kind, owner, name, counts, onPrompt } = options;
  const subjectOf = (verb: string) => `${AGENTS_SERVICE}.${verb}.${AGENT}.${owner}.${name}`;
  const [promptSubject, statusSubject, heartbeatSubject] = [
    subjectOf("prompt"),
    subjectOf("status"),
    subjectOf("hb"),
  ];
  const statusCounts = new EndpointCounts();
  const about = { agent: AGENT, owner, session: name };
  const heartbeat = () =>
    writeHeartbeat({ ...about, instance: id, at: clock.now(), intervalMs: limits.synadiaHeartbeatMs });
  const prompts = wire.serve(promptSubject, AGENTS_SERVICE, onPrompt);
  const statuses = wire.serve(statusSubject, AGENTS_SERVICE, ({ reply, respond }) => {
    if (reply !== undefined) respond(heartbeat());
    statusCounts.served(0);
  });
  const service = new MicroService({
    ...{ wire, clock, id, version, name: AGENTS_SERVICE },
    description: `Tasks of kind ${kind} of the swarm ${swarm}`,
    metadata: { ...about, protocol_version: PROTOCOL_VERSION, waggle_swarm: swarm, waggle_kind: kind },
    endpoints: () => [
      {
        ...{ name: "prompt", subject: promptSubject, queueGroup: AGENTS_SERVICE, counts },
        metadata: { max_payload: maxPayload(wire.maxPayloadBytes), attachments_ok: "false" },
      },
      { name: "status", subject: statusSubject, queueGroup: AGENTS_SERVICE, counts: statusCounts },
    ],
  });
  let cancelTimer: () => void = () => undefined;
  const sendHeartbeat = () => {
    wire.publish(heartbeatSubject, heartbeat());
    cancelTimer = clock.after(limits.synadiaHeartbeatMs, sendHeartbeat, { unref: true });
  };
  sendHeartbeat();
  return {
    promptSubject,
    stop: () => {
      cancelTimer();
      prompts.unsubscribe();
      statuses.unsubscribe();
      service.stop();
    },
  };
}

/** Longest prompt: the payload of a task, unless the server takes less. */
function maxPayload(serverMax: number): string {
  return `${Math.floor(Math.min(limits.payloadBytesMax, serverMax) / 1024)}KB`;
}

/** A token of the protocol's subjects: `Review.Code` becomes `review-code`. */
export function tokenFor(text: string): string {
  const token = text
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .slice(0, 63);
  return token === "" ? "default" : token;
}
