// Output of a task's newest attempts, requested from their agents through the leader. Output is not journaled:
// an agent that has ended took its logs along, which is a result here and not an error.

import { messageOf } from "../errors.ts";
import { limits } from "../limits.ts";
import { type AttemptText, logResponseSchema } from "../protocol/log-schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Asker, AskOptions } from "./asker.ts";
import type { TaskStory } from "./task-stories.ts";

/** The last output of one attempt (stderr of `--exec`, or `context.log`), or the reason for its absence. */
export interface AttemptLog {
  readonly attempt: number;
  readonly agent: string;
  /** At most 16 KiB. Empty when the attempt wrote nothing, and when `missing` is set. */
  readonly text: string;
  /** Bytes written before the text and no longer kept. */
  readonly droppedBytes: number;
  /** Reason for the absence, as a sentence without a full stop. */
  readonly missing?: string;
}

/** An agent's logs of one task, or the reason for their absence. */
type Held = readonly AttemptText[] | string;

export class AttemptLogs {
  readonly #asker: Asker;
  readonly #subjects: Subjects;

  constructor(asker: Asker, subjects: Subjects) {
    this.#asker = asker;
    this.#subjects = subjects;
  }

  /** Logs of the newest attempts, oldest first. Rejects only with the reason of `signal`. */
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
