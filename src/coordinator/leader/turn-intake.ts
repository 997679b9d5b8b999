// What goes into a turn of what waits for it: in order, as much as fits in one batch and in one turn's time.

import type { Command } from "../../core/command.ts";
import type { Turn } from "../../core/step.ts";
import { limits } from "../../limits.ts";
import type { SwarmState } from "../../state/state.ts";
import type { Inbox, InboxEntry } from "../requests/inbox.ts";

/** Takes commands off the front of `commands`. @returns whether none is left */
export function takeCommands(turn: Turn, commands: Command[]): boolean {
  for (let command = commands[0]; command !== undefined; command = commands[0]) {
    if (turn.isFull || turn.take(command).kind === "again") return false;
    commands.shift();
  }
  return true;
}

export interface EntriesOfTurn {
  readonly inbox: Inbox;
  /** Which the turn changes. */
  readonly state: SwarmState;
  /** Whether the turn has taken its time. */
  readonly isLate: () => boolean;
  /** Gets the entries whose commands are all decided. */
  readonly done: InboxEntry[];
}

/** Takes entries off the front of `inbox`; one that does not fit as a whole goes on in the next turn.
 *  @returns whether none is left */
export function takeEntries(turn: Turn, { inbox, state, isLate, done }: EntriesOfTurn): boolean {
  let commands = 0;
  for (let entry = inbox.peek(); entry !== undefined; entry = inbox.peek()) {
    while (entry.replies.length < entry.commands.length) {
      if (turn.isFull || commands >= limits.turnCommandsMax) return false;
      if (commands % limits.turnClockCommands === limits.turnClockCommands - 1 && isLate()) return false;
      const reply = turn.take(entry.commands[entry.replies.length] as Command);
      commands += 1;
      if (reply.kind === "again") return false;
      entry.replies.push(reply);
    }
    entry.look?.(state);
    done.push(entry);
    inbox.shift();
    if (entry.look !== undefined && isLate()) return inbox.depth === 0;
  }
  return true;
}
