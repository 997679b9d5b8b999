// Forbidden in pure code, whatever its imports: globals need no import.

import { fileRule, isPure, type Rule } from "./rule.ts";
import { lineAt } from "./source-tree.ts";

const impure: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/\bDate\b/g, "a clock (Date)"],
  [/\bperformance\b/g, "a clock (performance)"],
  [/\bprocess\b/g, "the process"],
  [/\bMath\.random\b/g, "randomness (Math.random)"],
  [/\bcrypto\b/g, "randomness (crypto)"],
  [/\b(?:setTimeout|setInterval|setImmediate|queueMicrotask)\b/g, "a timer"],
  [/\basync\b/g, "async"],
  [/\bawait\b/g, "await"],
  [/\bPromise\b/g, "a promise"],
  [/\bconsole\b/g, "the console"],
  [/\b(?:fetch|structuredClone|globalThis)\b/g, "the platform"],
  [/\.toLocale\w+|\bIntl\b|\.localeCompare\b/g, "the locale of the machine"],
];

const purityRule = fileRule({
  name: "state, scheduling and core are pure",
  why:
    "A decision is repeated on replay, on every standby and in the simulator, and must come out the same. " +
    "Time, ids and randomness are inputs, stamped once when a command leaves the inbox.",
  mend: "Take the value as an argument: `at: Instant` for the time, a `jitter` for chance. Return what to do.",
  where: isPure,
  checkFile: (file) =>
    impure.flatMap(([pattern, what]) =>
      [...file.code.matchAll(pattern)].map((match) => ({
        line: lineAt(file.code, match.index),
        found: `uses ${what}`,
      })),
    ),
});

export const purityRules: readonly Rule[] = [purityRule];
