// What a checker of states remembers of the state that it saw before, so that what cannot have changed since is not
// read again: of hundreds of tasks a batch moves a few. It trusts nothing that the core notes, only that what is
// declared readonly stays what it is; everything else is looked at each time.
//
// The one thing to know: whoever checks single states uses a new roll for each, which remembers nothing. One that is
// used again must have seen, and found well, the state after every batch.

import type { ProjectId, TaskId, TaskRef, UserId } from "../ids.ts";
import type { TaskSpec } from "../state/event.ts";
import type { EndedTask, SwarmState, TaskPartition, TaskRow } from "../state/state.ts";

/** A live task with what never changes of it, read once: specs have many shapes, which makes each look at one slow. */
export interface EnrolledTask {
  readonly ref: TaskRef;
  readonly id: TaskId;
  readonly row: TaskRow;
  readonly spec: TaskSpec;
  readonly user: UserId;
  readonly project: ProjectId;
  readonly maxAttempts: number;
  readonly hasDeadline: boolean;
  /** Since the state before. */
  isNew: boolean;
}

export class Roll {
  /** Of the state that was read last, in its order. */
  readonly live: EnrolledTask[] = [];
  /** Rows that were live in the state before and are not any more. */
  readonly gone = new Set<TaskRow>();
  /** What has ended since the state before, and by what id it is kept. */
  readonly newlyEnded: (readonly [ref: TaskRef, ended: EndedTask])[] = [];
  readonly #endedRefs: TaskRef[] = [];
  readonly #ended: EndedTask[] = [];
  readonly #partitions = new WeakMap<TaskPartition, readonly TaskRow[]>();

  read(state: SwarmState): void {
    this.#readLive(state);
    this.#readEnded(state);
  }

  /** Whether a queue holds the same tasks in the same places as when it was noted. */
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

  /** Walks what was and what is in their order: most tasks stand where they stood, and cost no look-up. Of one that
   *  does not, nothing is known any more. */
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
    const refs = this.#endedRefs;
    const known = this.#ended;
    const count = refs.length;
    this.newlyEnded.length = 0;
    let from = 0;
    let to = 0;
    for (const [ref, ended] of endedById) {
      while (from < count && known[from] !== ended) from += 1;
      if (from >= count || refs[from] !== ref) this.newlyEnded.push([ref, ended]);
      from += 1;
      refs[to] = ref;
      known[to] = ended;
      to += 1;
    }
    refs.length = to;
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
    isNew: true,
  };
}
