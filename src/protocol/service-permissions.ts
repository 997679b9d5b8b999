// Permissions of `waggle auth add --serve SUBJECT` and `--call SUBJECT`. `waggle serve nats` and `waggle serve synadia`
// answer requests on a served subject. Programs and `waggle bridge synadia` send requests to a called subject.
// Permissions of roles are in permissions.ts.

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
      ...(callsAgents ? [serviceQuestion(AGENTS_SERVICE), `${serviceQuestion(AGENTS_SERVICE)}.*`] : []),
    ],
    subscribe: [
      ...serves,
      ...agentsServed.map((prompt) => promptAs(prompt, "status")),
      ...(serves.length === 0 ? [] : [discoveryPattern]),
      ...(callsAgents ? [agentHeartbeats] : []),
    ],
    answers: serves.length === 0 ? undefined : servedAnswers,
  };
}

/** Name of the service, and first token of the subjects, of the Synadia Agent Protocol for NATS. */
export const AGENTS_SERVICE = "agents";
export const agentHeartbeats = `${AGENTS_SERVICE}.hb.*.*.*`;
/** Whoever may call these may also discover the agents, and hear their heartbeats. */
export const allPrompts = `${AGENTS_SERVICE}.prompt.>`;

/** Whether callers ask on a subject which agents there are. */
export function isDiscoveryOfAgents(subject: string): boolean {
  const question = serviceQuestion(AGENTS_SERVICE);
  return subject === question || subject.startsWith(`${question}.`);
}

/** Whether agents of the Synadia Agent Protocol hear prompts on a subject. */
export function isPrompt(subject: string): boolean {
  return subject.startsWith(`${AGENTS_SERVICE}.prompt.`);
}

/** The subject of an agent's status or heartbeats, from the subject of its prompts. */
function promptAs(prompt: string, verb: "status" | "hb"): string {
  return prompt.replace(`${AGENTS_SERVICE}.prompt.`, `${AGENTS_SERVICE}.${verb}.`);
}
