// Which project a call is for: the connection's unless another one is named, or the one of a view, which alone may be.

import { InvalidMessageError } from "../errors.ts";
import { shown } from "../protocol/sentence.ts";

/** Which project a call is for. */
export interface Scope {
  readonly project: string;
  /** Another one may not be named. */
  readonly isBound: boolean;
}

/** @throws InvalidMessageError where another project than the bound one is named */
export function projectIn({ project, isBound }: Scope, named: string | undefined): string {
  if (named === undefined || named === project) return project;
  if (!isBound) return named;
  const sentence = `project: must be '${project}' or left out, for this is its view; not ${shown(named)}`;
  throw new InvalidMessageError(sentence, { field: "project" });
}
