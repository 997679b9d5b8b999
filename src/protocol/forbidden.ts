// The error for a request without permission of the server. It has the form of a coordinator's refusal, so that
// callers handle a single form.

import type { CodedError } from "./schemas.ts";
import { agentHeartbeats, allPrompts, isDiscoveryOfAgents, isServiceSubject } from "./service-permissions.ts";

/** @param violation from the transport (transport/transport.ts): of a request, or of a subscription */
export function forbidden({ operation, subject, isUnsent = operation === "publish" }: Refused): CodedError {
  const sentence = `the server does not permit this user to ${operation} to ${subject}`;
  const remedies =
    isServiceSubject(subject) || isDiscoveryOfAgents(subject)
      ? [serviceRemedy(operation, subject)]
      : remediesFor(subject);
  const consequence = isUnsent ? "Nothing was done" : consequenceFor(subject);
  const parts = [sentence, consequence, ...remedies, ASK];
  return { ok: false, code: "WAGGLE_FORBIDDEN", message: parts.join(". ") };
}

interface Refused {
  readonly operation: "publish" | "subscribe";
  readonly subject: string;
  /** The message of a request was not sent. */
  readonly isUnsent?: boolean;
}

const ASK = "Ask the operator of the server for the permission";

/** A subscription without permission. */
function consequenceFor(subject: string): string {
  return isInbox(subject) ? "No answer can arrive, and the outcome is unknown" : "No message can arrive";
}

function serviceRemedy(operation: "publish" | "subscribe", subject: string): string {
  const flag = serviceFlag(operation, subject);
  return `\`waggle auth add\` makes a credential with the permission: ${flag}`;
}

function serviceFlag(operation: "publish" | "subscribe", subject: string): string {
  if (subject === agentHeartbeats || isDiscoveryOfAgents(subject)) return `--call '${allPrompts}'`;
  return `${operation === "publish" ? "--call" : "--serve"} ${subject}`;
}

function remediesFor(subject: string): string[] {
  if (isInbox(subject)) return ["Set an inbox prefix that is permitted (--inbox-prefix, NATS_INBOX_PREFIX)"];
  if (AGENT_SUBJECT.test(subject)) return ["Name a group that is permitted (--group)"];
  return SWARM_QUESTION.test(subject) ? ["Name a project that is permitted (--project, WAGGLE_PROJECT)"] : [];
}

/** `waggle.v1.<swarm>.agent.<group>.<id>.<verb>`, the group `_` without `--group`. */
const AGENT_SUBJECT = /^waggle\.v1\.[^.]+\.agent\./;

/** Questions about the whole swarm that can be asked about one project. */
const SWARM_QUESTION = /^waggle\.v1\.[^.]+\.project\._\.query\.(?:status|tasks?|explain|settings)$/;

/** True for the subject of a subscription to an inbox. It has wildcards, which the `isInbox` of subjects.ts refuses. */
function isInbox(subject: string): boolean {
  return subject.startsWith("_INBOX");
}
