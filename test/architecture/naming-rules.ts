// Each word has one meaning (docs/glossary.md). Some words are banned, because they have no meaning here, or a
// different one.

import { fileRule, isProduct, type Rule } from "./rule.ts";
import { lineAt } from "./source-tree.ts";

type Words = ReadonlyMap<string, string>;

/** Words with several meanings, and what to say instead. */
const vague: Words = new Map(
  Object.entries({
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
  }),
);

/** Second words for concepts of the glossary, each with the glossary's own word. */
const second: Words = new Map(
  Object.entries({
    acquisition: "slot lease",
    beat: "heartbeat",
    candidacy: "campaign",
    ceiling: "starvation limit",
    deed: "operation",
    desk: "handler",
    embargo: "commit barrier",
    endurance: "grace period",
    hole: "gap",
    lane: "queue",
    lookout: "poll",
    party: "slot lease, agent or coordinator",
    parties: "slot leases, agents or coordinators",
    reception: "router or handler",
    refill: "backfill",
    rescue: "emergency snapshot",
    tell: "print, send, log or notify",
    telling: "dispatcher, notification or log",
    told: "printed, sent, logged or notified",
    trust: "leader lease",
    victory: "won campaign",
  }),
);

const banned: Words = new Map([...vague, ...second]);

/** Second words that everyday English does without: banned also in comments, texts of the program and pages. */
const secondInTexts =
  /\b(?:candidac(?:y|ies)|ceilings?|deeds?|embargo(?:es)?|endurance|lanes?|lookouts?|receptions?|refills?|rescues?|victor(?:y|ies))\b/gi;

/** Phrases that may contain a banned word, each with its reason. Names of the platform (`worker_threads`, `new
 *  Worker`, a field `data: Uint8Array`) are no declarations and need no exception. */
const exceptions: readonly (readonly [phrase: RegExp, reason: string])[] = [
  [/^infoIn$/g, "INFO is a message of the NATS protocol"],
  [/^black[-_]?hole/gi, "the scenario of an agent that fails at once, and so is always free"],
  [/^BudgetManager$/g, "the public name that the budget document gives it"],
  [/data[- ]?folder/gi, "the folder `.waggle`: what --data-folder and the design call it"],
];

const fileNameRule = fileRule({
  name: "file names use the words of the glossary",
  why: "One meaning each. `worker.ts` may be an agent or a thread, `util.ts` may be anything.",
  mend: "Use the word the message names, or add an exception with its reason in test/architecture/naming-rules.ts.",
  where: (path) => isProduct(path) || path.startsWith("test/"),
  checkFile: ({ path }) =>
    path.split("/").flatMap((part) => wordsFound(part.replace(/\..*$/, ""), path, banned)),
});

const declared =
  /^(?:export\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:const|let|function\*?|class|interface|type)\s+(\w+)/gm;

/** Names declared within a function, and methods, fields and keys that begin a line. */
const inner =
  /^[ \t]+(?:(?:async\s+)?(?:const|let|function\*?)\s+|(?:(?:readonly|static|async|get|set|override)\s+)*)#?(\w+)/gm;

const declaredNameRule = fileRule({
  name: "declared names use the words of the glossary",
  why: "Names are read far from where they are declared; a word with two meanings is read with the wrong one.",
  mend: "Use the word the message names, or add an exception with its reason in test/architecture/naming-rules.ts.",
  where: isProduct,
  checkFile: ({ code, path }) => {
    const found = (pattern: RegExp, words: Words) =>
      [...code.matchAll(pattern)].flatMap((match) => {
        const line = lineAt(code, match.index);
        return wordsFound(match[1] ?? "", path, words).map((violation) => ({ ...violation, line }));
      });
    // Fields of other programs' messages are called data, node or info.
    return [...found(declared, banned), ...found(inner, second)];
  },
});

const textRule = fileRule({
  name: "texts use the words of the glossary",
  why: "Readers search for the word of the glossary. Flags, help, messages, comments and pages are part of the search.",
  mend: "Use the word that docs/glossary.md defines; the end of the page lists the banned words.",
  where: (path) => isProduct(path) || (/^(?:[A-Z]+|docs\/.*)\.md$/.test(path) && path !== "docs/glossary.md"),
  checkFile: ({ text }) =>
    [...text.matchAll(secondInTexts)].map((match) => ({ found: match[0], line: lineAt(text, match.index) })),
});

/** A node of the fault simulator is any process of its swarm. */
const speaksOfNodes = /^(src|test)\/(sim\/(fault|history)|cli\/torture)\//;

function wordsFound(name: string, path: string, instead: Words) {
  const plain = exceptions.reduce((rest, [phrase]) => rest.replace(phrase, ""), name);
  const words = plain
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return words.flatMap((word) => {
    const singular = word.replace(/s$/, "");
    if (singular === "node" && speaksOfNodes.test(path)) return [];
    const better = instead.get(word) ?? instead.get(singular);
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

export const namingRules: readonly Rule[] = [fileNameRule, declaredNameRule, textRule, glossaryRule];
