// The live audit stream: what a committed batch recorded, one message a subject
// `event.<project or _>.<noun>.<verb>`. The journal is the record; this only saves followers from polling it.

import type { RecordedEvent } from "../../core/step.ts";
import type { BatchIndex, Instant } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { Subjects } from "../../protocol/subjects.ts";
import type { EventType } from "../../state/event.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Commit } from "../requests/inbox.ts";

const encoder = new TextEncoder();

export class EventPublisher {
  readonly #transport: Transport;
  readonly #subjects: Subjects;
  readonly #namesByType = new Map<EventType, { readonly noun: string; readonly verb: string }>();
  /** Last batch on each subject since this term began, longest ago first: gaps show. */
  readonly #lastIdxBySubject = new Map<string, number>();

  constructor(transport: Transport, subjects: Subjects) {
    this.#transport = transport;
    this.#subjects = subjects;
  }

  publish(recorded: readonly RecordedEvent[], commit: Commit, at: Instant): void {
    const jsonBySubject = new Map<string, string[]>();
    for (const { event, json, project } of recorded) {
      const subject = this.#subjectOf(event.type, project);
      const list = jsonBySubject.get(subject);
      if (list === undefined) jsonBySubject.set(subject, [json]);
      else list.push(json);
    }
    for (const [subject, list] of jsonBySubject) {
      const prevIdx = this.#lastIdxBySubject.get(subject) ?? 0;
      this.#remember(subject, commit.idx);
      const head = `{"term":${commit.term},"idx":${commit.idx},"prevIdx":${prevIdx},"at":${at},"events":[`;
      this.#transport.publish(subject, encoder.encode(`${head}${list.join(",")}]}`));
    }
  }

  #remember(subject: string, idx: BatchIndex): void {
    this.#lastIdxBySubject.delete(subject);
    this.#lastIdxBySubject.set(subject, idx);
    const oldest = this.#lastIdxBySubject.keys().next();
    if (this.#lastIdxBySubject.size > limits.eventSubjectsMax && oldest.done === false) {
      this.#lastIdxBySubject.delete(oldest.value);
    }
  }

  #subjectOf(type: EventType, project: string): string {
    const known = this.#namesByType.get(type);
    const { noun, verb } = known ?? nounAndVerb(type);
    if (known === undefined) this.#namesByType.set(type, { noun, verb });
    return this.#subjects.event(project, noun, verb);
  }
}

/** `TaskDeadLettered` → `task.dead-lettered`. */
export function nounAndVerb(type: EventType): { readonly noun: string; readonly verb: string } {
  const [noun = "", ...verb] = type.split(/(?=[A-Z])/).map((word) => word.toLowerCase());
  return { noun, verb: verb.join("-") };
}
