// What a rule is: a check with its reason. A rule that fails without saying why it exists and how to mend
// what it found teaches nobody, so both are part of the type.

import type { SourceFile, Tree } from "./source-tree.ts";

export interface Violation {
  readonly path: string;
  readonly line?: number;
  /** What is there that should not be, or the reverse. */
  readonly found: string;
}

export interface Rule {
  readonly name: string;
  /** What goes wrong without it. */
  readonly why: string;
  /** What to do instead. */
  readonly mend: string;
  check(tree: Tree): Violation[];
}

/** The text of a failed rule; empty when it holds. */
export function explain(rule: Rule, violations: readonly Violation[]): string {
  if (violations.length === 0) return "";
  const places = violations.map(
    ({ path, line, found }) => `  ${path}${line === undefined ? "" : `:${line}`}  ${found}`,
  );
  return [`${rule.name}`, ...places, `Why: ${rule.why}`, `Mend: ${rule.mend}`].join("\n");
}

/** A rule that looks at one file at a time, at those `where` says. */
export function fileRule(
  rule: Omit<Rule, "check"> & {
    where(path: string): boolean;
    checkFile(file: SourceFile): Omit<Violation, "path">[];
  },
): Rule {
  const { where, checkFile, ...rest } = rule;
  return {
    ...rest,
    check: ({ files }) =>
      files
        .filter((file) => where(file.path))
        .flatMap((file) => checkFile(file).map((violation) => ({ path: file.path, ...violation }))),
  };
}

/** TypeScript that ships. */
export const isProduct = (path: string): boolean => /^(src|machines)\/.*\.ts$/.test(path);
/** All TypeScript and JavaScript of the repository. */
export const isCode = (path: string): boolean => /\.(ts|js|mjs)$/.test(path);
/** The files whose purity the rest stands on. */
export const isPure = (path: string): boolean => /^src\/(state|scheduling|core)\/.*\.ts$/.test(path);
