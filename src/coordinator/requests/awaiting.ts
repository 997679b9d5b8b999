// Which clients wait for which tasks. In memory only: after a fail-over clients ask again.

import type { TaskId } from "../../ids.ts";
import { limits } from "../../limits.ts";

/** Where outcomes go: the token of a client's `client.<token>.done`. */
type InboxToken = string;

export class Awaiting {
  readonly #tokensByTask = new Map<TaskId, readonly InboxToken[]>();

  /** @returns false when there is no room: the client asks again later */
  add(task: TaskId, token: InboxToken): boolean {
    const tokens = this.#tokensByTask.get(task);
    if (tokens?.includes(token) === true) return true;
    if (tokens === undefined && this.#tokensByTask.size >= limits.awaitedTasksMax) return false;
    if (tokens !== undefined && tokens.length >= limits.awaitersPerTaskMax) return false;
    this.#tokensByTask.set(task, tokens === undefined ? [token] : [...tokens, token]);
    return true;
  }

  of(task: TaskId): readonly InboxToken[] {
    return this.#tokensByTask.get(task) ?? [];
  }

  /** Forgets a task that ended, and says who waited for it. */
  take(task: TaskId): readonly InboxToken[] {
    const tokens = this.#tokensByTask.get(task);
    if (tokens === undefined) return [];
    this.#tokensByTask.delete(task);
    return tokens;
  }
}
