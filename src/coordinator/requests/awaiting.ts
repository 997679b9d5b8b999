// Which clients wait for which tasks. In memory only: after a fail-over clients ask again.

import type { TaskRef } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { TaskMap } from "../../state/task-map.ts";

/** Where outcomes go: `<inbox>.done`. */
type Inbox = string;

export class Awaiting {
  readonly #inboxesByTask = new TaskMap<readonly Inbox[]>();

  /** @returns false when there is no room: the client asks again later */
  add(task: TaskRef, inbox: Inbox): boolean {
    const inboxes = this.#inboxesByTask.get(task);
    if (inboxes?.includes(inbox) === true) return true;
    if (inboxes === undefined && this.#inboxesByTask.size >= limits.awaitedTasksMax) return false;
    if (inboxes !== undefined && inboxes.length >= limits.awaitersPerTaskMax) return false;
    this.#inboxesByTask.set(task, inboxes === undefined ? [inbox] : [...inboxes, inbox]);
    return true;
  }

  of(task: TaskRef): readonly Inbox[] {
    return this.#inboxesByTask.get(task) ?? [];
  }

  /** Forgets a task that ended, and says who waited for it. */
  take(task: TaskRef): readonly Inbox[] {
    const inboxes = this.#inboxesByTask.get(task);
    if (inboxes === undefined) return [];
    this.#inboxesByTask.delete(task);
    return inboxes;
  }
}
