// The filters of `tasks`, `retry` and `cancel`: the same flags everywhere, so that what is listed is what is touched.

import { type Command, InvalidArgumentError } from "commander";
import type { TaskFilterOptions, TaskStateName } from "../client/task-lists.ts";
import { nearMisses } from "../core/near-miss.ts";
import { kind } from "../ids.ts";
import { taskStates } from "../protocol/task-list-schemas.ts";
import { kindList, nameList, parseDuration, subjectToken } from "./values.ts";

export interface FilterFlags {
  readonly state?: readonly TaskStateName[];
  readonly kind?: readonly string[];
  readonly project?: string;
  readonly user?: readonly string[];
  readonly agent?: readonly string[];
  readonly olderThan?: number;
}

export function addFilterFlags(command: Command): Command {
  return command
    .option("--state <states>", "only in these states: failed,expired; may be repeated", stateList)
    .option("--kind <kinds>", "only of these kinds; several with commas, or repeated", kindList)
    .option("--project <name>", "only of this project (default: all projects)", subjectToken)
    .option("--user <users>", "only of these users; several with commas, or repeated", nameList)
    .option("--agent <ids>", "only where one of these agents ran the last attempt", nameList)
    .option(
      "--older-than <time>",
      "only ended, or if live begun, at least so long ago: 30s, 5m, 2h, 1d",
      parseDuration,
    );
}

/** @param command tells whether `--project` was given: the setting of that name says where tasks are submitted, and
 *  filters nothing */
export function filterOf(flags: FilterFlags, command: Command): TaskFilterOptions {
  const { state, kind: kinds, user, agent, olderThan } = flags;
  const project = command.getOptionValueSource("project") === "cli" ? flags.project : undefined;
  return {
    ...(state === undefined ? {} : { state }),
    ...(kinds === undefined ? {} : { kind: kinds }),
    ...(project === undefined ? {} : { project }),
    ...(user === undefined ? {} : { user }),
    ...(agent === undefined ? {} : { agent }),
    ...(olderThan === undefined ? {} : { olderThanMs: olderThan }),
  };
}

/** @throws InvalidArgumentError with the nearest state, and all of them */
function stateList(text: string, before: readonly string[] | undefined): readonly string[] {
  const states = nameList(text, before);
  for (const state of states) {
    if ((taskStates as readonly string[]).includes(state)) continue;
    const near = nearMisses(kind(state), taskStates.map(kind));
    const hint = near.length === 0 ? "" : ` Did you mean ${near.join(" or ")}?`;
    throw new InvalidArgumentError(
      `there is no state '${state}'.${hint} The states are ${taskStates.join(", ")}.`,
    );
  }
  return states;
}
