// Answers `project.<p>.query.log`: asks an agent for the output of a task's attempts. The coordinator journals and
// keeps no output. The agent compares the project of the subject with the project of each attempt, so no project reads
// another project's output.

import { NO_GROUP } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { check, decode, encode, invalid } from "../../protocol/codec.ts";
import { heldLogsSchema, logQuerySchema } from "../../protocol/log-schemas.ts";
import { type CodedError, projectIdSchema } from "../../protocol/schemas.ts";
import type { Subjects } from "../../protocol/subjects.ts";
import type { AgentName } from "../../requests/agent-gate.ts";
import { codedError } from "../../requests/answers.ts";
import type { SwarmState } from "../../state/state.ts";
import type { Message, Transport } from "../../transport/transport.ts";
import { taskNamed } from "../../views/task-queries.ts";

export interface AgentLogsDeps {
  readonly subjects: Subjects;
  readonly transport: Transport;
}

export class AgentLogs {
  readonly #deps: AgentLogsDeps;
  #asking = 0;

  constructor(deps: AgentLogsDeps) {
    this.#deps = deps;
  }

  /** Reads the state now; asks the agent when the answer is called for. */
  prepare({ subject, data }: Message, state: SwarmState): () => Promise<Uint8Array> {
    const project = check(subject.split(".").at(-3), projectIdSchema, "project");
    const query = decode(data, logQuerySchema);
    if (!project.ok) return async () => encode(project);
    if (!query.ok) return async () => encode(query);
    const { task, attempt } = query.value;
    const named = taskNamed(state, project.value, task);
    if (!named.ok) return async () => encode(named);
    const { agent = state.taskById.get(named.value)?.open?.agent } = query.value;
    if (agent === undefined)
      return async () => encode(invalid(`agent: is missing, and no agent runs task ${task} now`, "agent"));
    const request = { ...named.value, ...(attempt === undefined ? {} : { attempt }) };
    const group = state.agentById.get(agent)?.group ?? NO_GROUP;
    return async () => encode(await this.#ask({ group, agent }, request));
  }

  async #ask({ group, agent }: AgentName, request: object): Promise<object> {
    if (this.#asking >= limits.agentLogsAskedMax) return tooMany;
    this.#asking += 1;
    const { transport, subjects } = this.#deps;
    const asked = transport.request(subjects.agentLog(group, agent), encode(request), {
      timeoutMs: limits.agentLogMs,
    });
    const outcome = await asked.finally(() => {
      this.#asking -= 1;
    });
    if (outcome.kind !== "answered") return unheard(agent, outcome.kind === "no-responders");
    const held = decode(outcome.data, heldLogsSchema);
    return held.ok ? { ok: true, agent, logs: held.value.logs } : unheard(agent, false);
  }
}

function unheard(agent: string, isAway: boolean): CodedError {
  const why = isAway ? `agent ${agent} is not there, or keeps no logs` : `agent ${agent} does not answer`;
  return codedError("WAGGLE_GONE", `${why}: what an attempt wrote is kept by its agent alone`);
}

const tooMany = codedError(
  "WAGGLE_BACKPRESSURE",
  `${limits.agentLogsAskedMax} requests for logs of tasks wait, the maximum: try again later`,
  { retryAfterMs: limits.retryAfterMs },
);
