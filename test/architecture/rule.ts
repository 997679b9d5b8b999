// A rule: a check with its reason and its remedy. Both are part of the type, because a failure must explain the rule
// and how to fix the finding.

import type { SourceFile, Tree } from "./source-tree.ts";

export interface Violation {
  readonly path: string;
  readonly line?: number;
  /** The finding: what is wrong or missing. */
  readonly found: string;
}

export interface Rule {
  readonly name: string;
  /** Harm without the rule. */
  readonly why: string;
  /** Remedy. */
  readonly mend: string;
  check(tree: Tree): Violation[];
}

/** The text of a failed rule; empty if the rule holds. */
export function explain(rule: Rule, violations: readonly Violation[]): string {
  if (violations.length === 0) return "";
  const places = violations.map(
    ({ path, line, found }) => `  ${path}${line === undefined ? "" : `:${line}`}  ${found}`,
  );
  return [`${rule.name}`, ...places, `Why: ${rule.why}`, `Mend: ${rule.mend}`].join("\n");
}

/** A rule on single files that match `where`. */
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

/** Shipped TypeScript. */
export const isProduct = (path: string): boolean => /^(src|machines)\/.*\.ts$/.test(path);
/** All TypeScript and JavaScript of the repository. */
export const isCode = (path: string): boolean => /\.(ts|js|mjs)$/.test(path);
/** The pure files, which the product rests on. */
export const isPure = (path: string): boolean => /^src\/(state|scheduling|core)\/.*\.ts$/.test(path);
