// The project of a task named by id: `--project`, or the only project with a task of the id.

import type { Command } from "commander";
import type { AskOptions } from "../client/asker.ts";
import type { Swarm } from "../client/swarm.ts";
import { WaggleError } from "../errors.ts";
import { DEFAULT_PROJECT } from "../ids.ts";

/** `--project` from the command line. The setting of the same name applies to submits; a task may be in a different
 *  project. */
export function typedProject(command: Command): string | undefined {
  return command.getOptionValueSource("project") === "cli" ? command.getOptionValue("project") : undefined;
}

export interface SoughtTask {
  readonly id: string;
  /** `--project` */
  readonly typed: string | undefined;
  /** The setting (WAGGLE_PROJECT, waggle.config.json): chosen if several projects have a task of the id. */
  readonly configured: string;
}

/** @throws WaggleError `WAGGLE_AMBIGUOUS_TASK`; `WAGGLE_UNKNOWN_TASK`; NoLeaderError; UnreachableError */
export async function findProject(
  swarm: Pick<Swarm, "taskStatus">,
  { id, typed, configured }: SoughtTask,
  options: AskOptions,
): Promise<string> {
  if (typed !== undefined) return typed;
  try {
    return (await swarm.taskStatus(id, options)).project;
  } catch (error) {
    const isConfigured = configured !== DEFAULT_PROJECT;
    if (isConfigured && error instanceof WaggleError && mayBeConfigured.has(error.code)) return configured;
    throw error;
  }
}

/** Reasons to take the configured project: several have the id, or this user may not ask about all projects. */
const mayBeConfigured: ReadonlySet<string> = new Set(["WAGGLE_AMBIGUOUS_TASK", "WAGGLE_FORBIDDEN"]);
