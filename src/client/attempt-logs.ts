// What the newest attempts of a task wrote, asked of their agents through the leader. Nothing of it is journaled: an
// agent that has ended has taken its logs along, which is an answer here and no error.

import { messageOf } from "../errors.ts";
import { limits } from "../limits.ts";
import { type AttemptText, logResponseSchema } from "../protocol/log-schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Asker, AskOptions } from "./asker.ts";
import type { TaskStory } from "./task-stories.ts";

/** The end of what one attempt wrote to stderr (`--exec`) or to `context.log`, or why it is not to be had. */
export interface AttemptLog {
  readonly attempt: number;
  readonly agent: string;
  /** At most 16 KiB; empty when it wrote nothing, and where `missing` says why. */
  readonly text: string;
  /** Written before the text and no longer kept. */
  readonly droppedBytes: number;
  /** Why there is no text, as a sentence without its full stop. */
  readonly missing?: string;
}

/** An agent's logs of one task, or why they are not to be had. */
type Held = readonly AttemptText[] | string;

export class AttemptLogs {
  readonly #asker: Asker;
  readonly #subjects: Subjects;

  constructor(asker: Asker, subjects: Subjects) {
    this.#asker = asker;
    this.#subjects = subjects;
  }

  /** The newest attempts', oldest first. Rejects with the reason of `signal` alone. */
  async of({ status, attempts }: TaskStory, { signal, timeoutMs }: AskOptions): Promise<AttemptLog[]> {
    const options = {
      timeoutMs: timeoutMs ?? limits.logAskTimeoutMs,
      ...(signal === undefined ? {} : { signal }),
    };
    const shown = attempts.slice(-limits.logsShownMax);
    const agents = [...new Set(shown.map(({ agent }) => agent))];
    const held = await Promise.all(agents.map((agent) => this.#ask(status, agent, options)));
    signal?.throwIfAborted();
    return shown.map(({ attempt, agent }) => logOf({ attempt, agent }, held[agents.indexOf(agent)] ?? []));
  }

  async #ask(
    { task, project }: Pick<TaskStory["status"], "task" | "project">,
    agent: string,
    options: AskOptions,
  ): Promise<Held> {
    const subject = this.#subjects.query(project, "log");
    const question = {
      kind: "query",
      subject,
      message: { v: 1, task, agent },
      schema: logResponseSchema,
    } as const;
    try {
      const answer = await this.#asker.ask(question, options);
      return answer.ok ? answer.logs : answer.message;
    } catch (cause) {
      return messageOf(cause);
    }
  }
}

function logOf(of: Pick<AttemptLog, "attempt" | "agent">, held: Held): AttemptLog {
  if (typeof held === "string") return { ...of, text: "", droppedBytes: 0, missing: held };
  const found = held.find(({ attempt }) => attempt === of.attempt);
  if (found !== undefined) return { ...of, text: found.text, droppedBytes: found.droppedBytes };
  return { ...of, text: "", droppedBytes: 0, missing: `agent ${of.agent} no longer holds it` };
}
