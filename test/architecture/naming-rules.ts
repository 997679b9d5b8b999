// Each word has one meaning (docs/glossary.md). Some words are banned, because they have no meaning here, or a
// different one.

import { fileRule, isProduct, type Rule } from "./rule.ts";
import { lineAt } from "./source-tree.ts";

const instead: Readonly<Record<string, string>> = {
  job: "task",
  worker: "agent",
  node: "agent, server or coordinator",
  manager: "the noun it manages",
  helper: "the thing it does",
  util: "the thing it does",
  common: "the thing it is",
  misc: "the thing it is",
  data: "payload, result, record or bytes",
  info: "the noun itself",
  impl: "the vendor or the kind of implementation",
  // Second words for concepts of the glossary.
  beat: "heartbeat",
  candidacy: "campaign",
  deed: "operation",
  desk: "handler",
  embargo: "commit barrier",
  endurance: "grace period",
  lane: "queue",
  lookout: "poll",
  party: "slot lease, agent or coordinator",
  parties: "slot leases, agents or coordinators",
  refill: "backfill",
  rescue: "emergency snapshot",
  tell: "print, send, log or notify",
  told: "printed, sent, logged or notified",
  victory: "won campaign",
};

/** Phrases that may contain a banned word, each with its reason. Names of the platform (`worker_threads`, `new
 *  Worker`, a field `data: Uint8Array`) are no declarations and need no exception. */
const exceptions: readonly (readonly [phrase: RegExp, reason: string])[] = [
  [/^infoIn$/g, "INFO is a message of the NATS protocol"],
  [/^BudgetManager$/g, "the public name that the budget document gives it"],
  [/data[- ]?folder/gi, "the folder `.waggle`: what --data-folder and the design call it"],
];

const fileNameRule = fileRule({
  name: "file names use the words of the glossary",
  why: "One meaning each. `worker.ts` may be an agent or a thread, `util.ts` may be anything.",
  mend: "Use the word the message names, or add an exception with its reason in test/architecture/naming-rules.ts.",
  where: (path) => isProduct(path) || path.startsWith("test/"),
  checkFile: ({ path }) => path.split("/").flatMap((part) => wordsFound(part.replace(/\..*$/, ""), path)),
});

const declared =
  /^(?:export\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:const|let|function\*?|class|interface|type)\s+(\w+)/gm;

const declaredNameRule = fileRule({
  name: "declared names use the words of the glossary",
  why: "Names are read far from where they are declared; a word with two meanings is read with the wrong one.",
  mend: "Use the word the message names, or add an exception with its reason in test/architecture/naming-rules.ts.",
  where: isProduct,
  checkFile: ({ code, path }) =>
    [...code.matchAll(declared)].flatMap((match) => {
      const name = match[1] ?? "";
      return wordsFound(name, path).map((violation) => ({ ...violation, line: lineAt(code, match.index) }));
    }),
});

/** A node of the fault simulator is any process of its swarm. */
const speaksOfNodes = /^(src|test)\/(sim\/(fault|history)|cli\/torture)\//;

function wordsFound(name: string, path: string) {
  const plain = exceptions.reduce((rest, [phrase]) => rest.replace(phrase, ""), name);
  const words = plain
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return words.flatMap((word) => {
    const singular = word.replace(/s$/, "");
    if (singular === "node" && speaksOfNodes.test(path)) return [];
    const better = instead[word] ?? instead[singular];
    return better === undefined ? [] : [{ found: `${name}: "${word}", say ${better}` }];
  });
}

/** A cell may add its subject: `**turn** of a project` differs from `**turn** of the coordinator`. */
const glossaryRule = fileRule({
  name: "no word stands twice in the glossary",
  why: "One meaning each: of two rows, whoever looks a word up reads the first.",
  mend: "Make it one row, or say of what in the cell of the word.",
  where: (path) => path === "docs/glossary.md",
  checkFile: ({ text }) => {
    const seen = new Set<string>();
    return [...text.matchAll(/^\| (\*\*[^|]*?) \|/gm)].flatMap((row) =>
      (row[1] ?? "").split(", ").flatMap((word) => {
        if (!seen.has(word)) {
          seen.add(word);
          return [];
        }
        return [{ found: word, line: lineAt(text, row.index) }];
      }),
    );
  },
});

export const namingRules: readonly Rule[] = [fileNameRule, declaredNameRule, glossaryRule];
