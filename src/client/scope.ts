// The project of a call: the named project, or else the connection's. A view's calls are bound to its project.

import { InvalidMessageError } from "../errors.ts";
import { shown } from "../protocol/sentence.ts";

export interface Scope {
  readonly project: string;
  /** Calls may not name a different project. */
  readonly isBound: boolean;
}

/** @throws InvalidMessageError when a bound scope is given a different project */
export function projectIn({ project, isBound }: Scope, named: string | undefined): string {
  if (named === undefined || named === project) return project;
  if (!isBound) return named;
  const sentence = `project: must be '${project}' or left out in this view of the project; not ${shown(named)}`;
  throw new InvalidMessageError(sentence, { field: "project" });
}
