// The memory of a checker of states. Most tasks do not change from batch to batch, and unchanged facts are not read
// again. The roll relies on no note of the core, only on fields declared readonly; all other fields are read each time.
//
// The one thing to know: a check of a single state needs a new roll, which remembers nothing. A reused roll must have
// read the state after every batch, each without violations.

import type { ProjectId, TaskId, TaskRef, UserId } from "../ids.ts";
import type { EndedTask } from "../state/ended-task.ts";
import type { TaskSpec } from "../state/event.ts";
import type { SwarmState, TaskPartition, TaskRow } from "../state/state.ts";

/** A live task with its constant fields, read once: specs have many shapes, so every read of a spec is slow. */
export interface EnrolledTask {
  readonly ref: TaskRef;
  readonly id: TaskId;
  readonly row: TaskRow;
  readonly spec: TaskSpec;
  readonly user: UserId;
  readonly project: ProjectId;
  readonly maxAttempts: number;
  readonly hasDeadline: boolean;
  readonly hasNeeds: boolean;
  /** New since the state before. */
  isNew: boolean;
}

export class Roll {
  /** The live tasks of the last state read, in its order. */
  readonly live: EnrolledTask[] = [];
  /** Rows that were live in the state before and are no longer. */
  readonly gone = new Set<TaskRow>();
  /** Tasks that ended since the state before. */
  readonly newlyEnded: EndedTask[] = [];
  readonly #endedPlaces: number[] = [];
  readonly #partitions = new WeakMap<TaskPartition, readonly TaskRow[]>();

  read(state: SwarmState): void {
    this.#readLive(state);
    this.#readEnded(state);
  }

  /** Whether a partition holds the same tasks at the same heap positions as when noted. */
  isKnown(partition: TaskPartition): boolean {
    const { tasks } = partition;
    const known = this.#partitions.get(partition);
    if (known?.length !== tasks.size) return false;
    for (let at = 0; at < known.length; at += 1) if (known[at] !== tasks.at(at)) return false;
    return true;
  }

  note(partition: TaskPartition): void {
    this.#partitions.set(partition, [...partition.tasks.values()]);
  }

  /**
   * Walks the old and the new list in parallel: most tasks keep their position, and need no look-up. A task that moved
   * counts as new.
   */
  #readLive({ taskById }: SwarmState): void {
    const { live, gone } = this;
    const count = live.length;
    gone.clear();
    let from = 0;
    let to = 0; // never beyond `from` while anything is left to be read
    for (const [ref, row] of taskById) {
      for (; from < count && live[from]?.row !== row; from += 1) gone.add((live[from] as EnrolledTask).row);
      const before = from < count ? live[from] : undefined;
      from += 1;
      if (before !== undefined && before.ref === ref && before.spec === row.spec) {
        before.isNew = false;
        live[to] = before;
      } else live[to] = enrolled(ref, row);
      to += 1;
    }
    for (; from < count; from += 1) gone.add((live[from] as EnrolledTask).row);
    live.length = to;
  }

  #readEnded({ endedById }: SwarmState): void {
    const known = this.#endedPlaces;
    const count = known.length;
    this.newlyEnded.length = 0;
    let from = 0;
    let to = 0;
    for (const place of endedById.places()) {
      while (from < count && known[from] !== place) from += 1;
      if (from >= count) this.newlyEnded.push(endedById.at(place));
      from += 1;
      known[to] = place;
      to += 1;
    }
    known.length = to;
  }
}

function enrolled(ref: TaskRef, row: TaskRow): EnrolledTask {
  const { spec } = row;
  const { user, project, maxAttempts, deadline } = spec;
  return {
    ref,
    id: ref.task,
    row,
    spec,
    user,
    project,
    maxAttempts,
    hasDeadline: deadline !== undefined,
    hasNeeds: spec.needs !== undefined,
    isNew: true,
  };
}
