// Permissions that a credential has beyond its role: subjects of services that its holder serves (`waggle serve nats`
// and `synadia`), or calls (programs, and `waggle bridge synadia`). Not here: the table of roles (permissions.ts).

import { limits } from "../limits.ts";
import { discoveryPattern, serviceQuestion } from "./server-subjects.ts";

export interface Services {
  readonly serves: readonly string[];
  readonly calls: readonly string[];
}

/** Answers to each received request, on the request's own reply subject. */
export interface Answers {
  readonly max: number;
  /** From the request on. */
  readonly expiresMs: number;
}

/** Chunks of a streamed result, and the result. */
const servedAnswers: Answers = { max: limits.servedAnswersMax, expiresMs: limits.servedAnswersMs };

/** A subject outside of NATS and of every swarm, whose first token is no wildcard. */
export function isServiceSubject(subject: string): boolean {
  return /^(?!\$|_INBOX|waggle\.)[^\s.*>]+(?:\.(?:\*|[^\s.*>]+))*(?:\.>)?$/.test(subject);
}

/** What services need besides the permissions of a role. */
export function servicePermissions({ serves, calls }: Services) {
  const agentsServed = serves.filter(isPrompt);
  const callsAgents = calls.some(isPrompt);
  return {
    publish: [
      ...agentsServed.map((prompt) => promptAs(prompt, "hb")),
      ...calls,
      ...(callsAgents ? [serviceQuestion(AGENTS), `${serviceQuestion(AGENTS)}.*`] : []),
    ],
    subscribe: [
      ...serves,
      ...agentsServed.map((prompt) => promptAs(prompt, "status")),
      ...(serves.length === 0 ? [] : [discoveryPattern]),
      ...(callsAgents ? [`${AGENTS}.hb.*.*.*`] : []),
    ],
    answers: serves.length === 0 ? undefined : servedAnswers,
  };
}

/** Name of the service, and first token of the subjects, of the Synadia Agent Protocol for NATS. */
const AGENTS = "agents";

function isPrompt(subject: string): boolean {
  return subject.startsWith(`${AGENTS}.prompt.`);
}

/** The subject of an agent's status or heartbeats, from the subject of its prompts. */
function promptAs(prompt: string, verb: "status" | "hb"): string {
  return prompt.replace(`${AGENTS}.prompt.`, `${AGENTS}.${verb}.`);
}
