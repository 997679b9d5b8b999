// The project of a question: `--project`, or the only project with a task of the id. A user with the rights of one
// project names that project by `--project`, or by WAGGLE_PROJECT.

import type { Command } from "commander";
import type { AskOptions } from "../client/asker.ts";
import type { Swarm } from "../client/swarm.ts";
import type { Settings } from "../config/settings.ts";
import { WaggleError } from "../errors.ts";
import { DEFAULT_PROJECT } from "../ids.ts";
import { ask } from "./ask.ts";
import type { VerbContext } from "./verb.ts";

/** `--project` from the command line. The setting of the same name applies to submits; a task may be in a different
 *  project, unless the settings limit questions to the project. */
export function typedProject(command: Command, { project, projectOnly }: Settings): string | undefined {
  if (command.getOptionValueSource("project") === "cli") return command.getOptionValue("project");
  return projectOnly ? project : undefined;
}

/** Asks about the project of `--project`, or about the whole swarm. A user who may not ask about the whole swarm gets
 *  the answer about the configured project. */
export async function askAbout<Answer>(
  context: VerbContext,
  typed: string | undefined,
  question: (options: AskOptions & { readonly project?: string }) => Promise<Answer>,
): Promise<{ readonly answer: Answer; readonly project: string | undefined }> {
  const about = async (project: string | undefined) => {
    const scope = project === undefined ? {} : { project };
    return { answer: await ask(context, (options) => question({ ...scope, ...options })), project };
  };
  try {
    return await about(typed);
  } catch (error) {
    const { project: configured } = context.settings;
    const isForbidden = error instanceof WaggleError && error.code === "WAGGLE_FORBIDDEN";
    if (typed !== undefined || configured === DEFAULT_PROJECT || !isForbidden) throw error;
    return await about(configured);
  }
}

/** Told with an answer about the configured project alone. */
export function onlyProject(project: string | undefined): string {
  return `only project ${project}: this user may not ask about the whole swarm`;
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
  return await aboutTask({ typed, configured }, async ({ project }) => {
    return project ?? (await swarm.taskStatus(id, options)).project;
  });
}

/** Asks about a task of `--project`, or of the only project with the id. @throws as `findProject` */
export async function aboutTask<Answer>(
  { typed, configured }: Omit<SoughtTask, "id">,
  question: (of: { readonly project?: string }) => Promise<Answer>,
): Promise<Answer> {
  if (typed !== undefined) return await question({ project: typed });
  try {
    return await question({});
  } catch (error) {
    const isConfigured = configured !== DEFAULT_PROJECT;
    if (isConfigured && error instanceof WaggleError && mayBeConfigured.has(error.code))
      return await question({ project: configured });
    throw error;
  }
}

/** Reasons to take the configured project: several have the id, or this user may not ask about all projects. */
const mayBeConfigured: ReadonlySet<string> = new Set(["WAGGLE_AMBIGUOUS_TASK", "WAGGLE_FORBIDDEN"]);
