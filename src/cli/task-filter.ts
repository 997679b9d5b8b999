// The filters of `tasks`, `retry`, `cancel`, `revoke` and `reschedule`: the same flags in each verb.

import { type Command, InvalidArgumentError } from "commander";
import { cancellableStates } from "../client/cancels.ts";
import type { TaskFilterOptions, TaskStateName } from "../client/task-lists.ts";
import { headOf } from "../cut-text.ts";
import { kind } from "../ids.ts";
import { taskStates } from "../protocol/task-list-schemas.ts";
import { nearMisses } from "../state/near-miss.ts";
import { attributeMap, kindList, nameList, parseDuration, subjectToken } from "./values.ts";

export interface FilterFlags {
  readonly state?: readonly TaskStateName[];
  readonly kind?: readonly string[];
  readonly project?: string;
  readonly user?: readonly string[];
  readonly agent?: readonly string[];
  readonly attribute?: Readonly<Record<string, string>>;
  readonly olderThan?: number;
}

/** @param states the states of the tasks that the verb accepts */
export function addFilterFlags(command: Command, states: readonly TaskStateName[]): Command {
  return command
    .option(
      "--state <states>",
      `only tasks in these states, separated by commas; may be repeated. Default: ${states.join(", ")}`,
      stateList,
    )
    .option("--kind <kinds>", "only tasks of these kinds, separated by commas; may be repeated", kindList)
    .option("--project <name>", "only tasks of this project (default: all projects)", subjectToken)
    .option("--user <users>", "only tasks of these users, separated by commas; may be repeated", nameList)
    .option("--agent <ids>", "only tasks with the last attempt at one of the agents", nameList)
    .option(
      "--attribute <name=value>",
      "only tasks with this attribute; may be repeated: then all must match",
      attributeMap,
    )
    .option("--older-than <time>", `${ageText(states)}: 30s, 5m, 2h, 1d`, parseDuration);
}

function ageText(states: readonly TaskStateName[]): string {
  const live = "submitted, or retried, at least this long ago";
  const isLive = (state: TaskStateName) => (cancellableStates as readonly string[]).includes(state);
  if (states.every(isLive)) return `only tasks ${live}`;
  if (!states.some(isLive)) return "only tasks that ended at least this long ago";
  return `only tasks that ended at least this long ago, and live tasks ${live}`;
}

/** @param command tells whether `--project` was given: the setting of that name says where tasks are submitted, and
 *  filters nothing */
export function filterOf(flags: FilterFlags, command: Command): TaskFilterOptions {
  const { state, kind: kinds, user, agent, attribute, olderThan } = flags;
  const project = command.getOptionValueSource("project") === "cli" ? flags.project : undefined;
  return {
    ...(state === undefined ? {} : { state }),
    ...(kinds === undefined ? {} : { kind: kinds }),
    ...(project === undefined ? {} : { project }),
    ...(user === undefined ? {} : { user }),
    ...(agent === undefined ? {} : { agent }),
    ...(attribute === undefined ? {} : { attributes: attribute }),
    ...(olderThan === undefined ? {} : { olderThanMs: olderThan }),
  };
}

/** @throws InvalidArgumentError with the nearest state and all states */
function stateList(text: string, before: readonly string[] | undefined): readonly string[] {
  const states = nameList(text, before);
  for (const state of states) {
    if ((taskStates as readonly string[]).includes(state)) continue;
    const near = nearMisses(kind(state), taskStates.map(kind));
    const hint = near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`;
    throw new InvalidArgumentError(
      `there is no state ${JSON.stringify(headOf(state, 40))} (${taskStates.join(", ")})${hint}`,
    );
  }
  return states;
}
