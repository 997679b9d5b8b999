// Recounts, along the journal, what grants and the policy on agents permit (invariant 59). No agent joins, gets a task,
// is granted a slot or charges tokens beyond the grant in force, and no session outlasts the batch that forbids it. On
// purpose none of the code under test.

import { NO_GROUP } from "../../ids.ts";
import type { Event, EventOf } from "../../state/event.ts";
import type { CommittedLog } from "./committed-log.ts";
import type { Violation } from "./violation.ts";

export function checkGrants(log: CommittedLog): Violation[] {
  const recount = new Recount();
  for (const { idx, events } of log.batches) {
    for (const event of events) recount.take(event, idx);
    recount.endBatch(idx);
  }
  return recount.violations;
}

type Grant = EventOf<"GrantConfigured">["grant"];

/** The running session of an agent. */
interface Session {
  readonly joined: EventOf<"AgentJoined">;
  readonly group: string;
  /** Project of each task that the session has an attempt of. */
  readonly projectByTask: Map<string, string>;
}

class Recount {
  readonly violations: Violation[] = [];
  readonly #grantByGroup = new Map<string, Grant>();
  readonly #sessionByAgent = new Map<string, Session>();
  #isDeclared = false;
  /** Whether the present batch changed what is permitted. */
  #hasChanged = false;

  take(event: Event, idx: number): void {
    switch (event.type) {
      case "GrantConfigured":
        this.#grantByGroup.set(event.group, event.grant);
        this.#hasChanged = true;
        return;
      case "GrantRemoved":
        this.#grantByGroup.delete(event.group);
        this.#hasChanged = true;
        return;
      case "PolicyChanged":
        this.#isDeclared = event.policy.agents === "declared";
        this.#hasChanged = true;
        return;
      case "AgentJoined":
        return this.#join(event, idx);
      case "AgentLeft":
        return this.#leave(event, idx);
      case "TaskAssigned":
        return this.#assign(event, idx);
      case "TaskCompleted":
        this.#charge(event, idx);
        return this.#end(event);
      case "AttemptFailed":
      case "TaskFailed":
      case "TaskDeadLettered":
      case "TaskCancelled":
      case "TaskExpired":
        return this.#end(event);
      case "SlotGranted":
        return this.#grantSlots(event, idx);
      default:
        return; // gives an agent nothing
    }
  }

  /** Sessions that a change forbids end in its batch: a seed's agents have too few attempts for several batches. */
  endBatch(idx: number): void {
    if (!this.#hasChanged) return;
    this.#hasChanged = false;
    for (const [agent, session] of this.#sessionByAgent) {
      const excess = this.#excessOf(session);
      if (excess !== undefined) this.#violate(`after batch ${idx} agent ${agent} goes on, ${excess}`);
      for (const [task, project] of session.projectByTask)
        if (!this.#includes(session, project))
          this.#violate(`after batch ${idx} agent ${agent} still has ${task} of project ${project}`);
    }
  }

  #join(event: EventOf<"AgentJoined">, idx: number): void {
    const before = this.#sessionByAgent.get(event.agent);
    const isSame = before?.joined.incarnation === event.incarnation;
    const session: Session = {
      joined: event,
      group: event.group ?? NO_GROUP,
      projectByTask: isSame ? before.projectByTask : new Map(),
    };
    this.#sessionByAgent.set(event.agent, session);
    const excess = this.#excessOf(session);
    if (excess !== undefined) this.#violate(`batch ${idx} lets agent ${event.agent} join, ${excess}`);
  }

  #leave({ agent, reason }: EventOf<"AgentLeft">, idx: number): void {
    const session = this.#sessionByAgent.get(agent);
    this.#sessionByAgent.delete(agent);
    if (reason !== "forbidden" || session === undefined) return;
    if (!this.#isDeclared && !this.#grantByGroup.has(session.group))
      this.#violate(
        `batch ${idx} ends agent ${agent} as forbidden, though group ${session.group} is unbounded`,
      );
  }

  #assign({ agent, task, project }: EventOf<"TaskAssigned">, idx: number): void {
    const session = this.#sessionByAgent.get(agent);
    if (session === undefined) return;
    session.projectByTask.set(keyOf({ task, project }), project);
    const what = `batch ${idx} assigns ${task} of project ${project} to agent ${agent}`;
    if (!this.#includes(session, project))
      this.#violate(`${what}, but the grant of group ${session.group} excludes the project`);
    const excess = this.#excessOf(session);
    if (excess !== undefined) this.#violate(`${what}, ${excess}`);
  }

  #end({ task, project }: { readonly task: string; readonly project: string }): void {
    for (const { projectByTask } of this.#sessionByAgent.values())
      projectByTask.delete(keyOf({ task, project }));
  }

  #charge({ agent, task, tokens = 0 }: EventOf<"TaskCompleted">, idx: number): void {
    const session = this.#sessionByAgent.get(agent);
    const { tokens: max } = this.#grantOf(session) ?? {};
    if (max !== undefined && tokens > max)
      this.#violate(`batch ${idx} charges ${task} with ${tokens} tokens, but the grant permits ${max}`);
  }

  #grantSlots({ agent, handle, resources, project, tokens = 0 }: EventOf<"SlotGranted">, idx: number): void {
    const session = this.#sessionByAgent.get(agent);
    const grant = this.#grantOf(session);
    if (session === undefined || grant === undefined) return;
    const violate = (what: string) =>
      this.#violate(
        `batch ${idx} grants ${handle}, but the grant of group ${session.group} excludes ${what}`,
      );
    for (const resource of resources)
      if (grant.resources?.includes(resource) === false) violate(`resource ${resource}`);
    if (project !== undefined && !this.#includes(session, project)) violate(`project ${project}`);
    if (grant.tokens !== undefined && tokens > grant.tokens) violate(`${tokens} tokens`);
  }

  #grantOf(session: Session | undefined): Grant | undefined {
    return session && this.#grantByGroup.get(session.group);
  }

  #includes(session: Session, project: string): boolean {
    return (this.#grantOf(session)?.projects as readonly string[] | undefined)?.includes(project) !== false;
  }

  /** What the agent declared beyond the grant of its group. */
  #excessOf(session: Session): string | undefined {
    const { group, joined } = session;
    const grant = this.#grantOf(session);
    if (grant === undefined)
      return this.#isDeclared ? `though group ${group} has no grant, and agents must be declared` : undefined;
    const { kinds, role, agentType, labels = {}, maxConcurrent } = joined;
    const beyond = [
      ...kinds.filter((kind) => grant.kinds?.includes(kind) === false).map((kind) => `kind ${kind}`),
      ...(role !== undefined && grant.roles?.includes(role) === false ? [`role ${role}`] : []),
      ...(grant.types?.includes(agentType ?? "") === false ? [`type ${agentType}`] : []),
      ...Object.entries(labels)
        .map(([name, value]) => [name, `${name}=${value}`])
        .filter((forms) => grant.labels !== undefined && !forms.some((form) => grant.labels?.includes(form)))
        .map(([, label]) => `label ${label}`),
      ...(maxConcurrent > (grant.maxConcurrent ?? maxConcurrent)
        ? [`${maxConcurrent} attempts at once`]
        : []),
    ];
    return beyond.length === 0
      ? undefined
      : `though the grant of group ${group} excludes ${beyond.join(", ")}`;
  }

  #violate(sentence: string): void {
    this.violations.push({ promise: "P7", checker: "grants", sentence });
  }
}

function keyOf({ task, project }: { readonly task: string; readonly project: string }): string {
  return `${project}/${task}`;
}
