// The project of a task that was named by its id. `--project` says it; without it the swarm is asked which project has
// a task of this id.

import type { Command } from "commander";
import type { AskOptions } from "../client/asker.ts";
import type { Swarm } from "../client/swarm.ts";
import { WaggleError } from "../errors.ts";
import { DEFAULT_PROJECT } from "../ids.ts";

/** `--project` as it was typed. The setting of that name says where tasks are submitted; a task may be elsewhere. */
export function typedProject(command: Command): string | undefined {
  return command.getOptionValueSource("project") === "cli" ? command.getOptionValue("project") : undefined;
}

export interface SoughtTask {
  readonly id: string;
  /** `--project` */
  readonly typed: string | undefined;
  /** The setting (WAGGLE_PROJECT, waggle.config.json): it is meant where several projects have a task of this id. */
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
