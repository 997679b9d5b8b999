// How comments, pages and names of tests are written: they name things, in sentences that are read once.

import { pointingWordsOf, type Sentence, sentencesOf, testNamesOf, wordsOf } from "./prose.ts";
import { isCode, type Rule, type Violation } from "./rule.ts";
import type { SourceFile, Tree } from "./source-tree.ts";

const POINTING_SHARE_MAX = 0.06;
const POINTING_SHARE_MAX_IN_A_FOLDER = 0.075;
/** Fewer words say little about a folder: they count in the folder above. */
const FOLDER_WORDS_MIN = 200;
const SENTENCE_WORDS_MAX = 30;
const POINTING_SHARE_MAX_IN_TEST_NAMES = 0.065;
/** The worst names, listed if the rule fails. */
const TEST_NAMES_SHOWN = 10;

const isProse = ({ path }: SourceFile) => isCode(path) || path.endsWith(".py") || path.endsWith(".md");

interface Count {
  words: number;
  pointing: number;
}

const pointingRule: Rule = {
  name: "comments and pages name what they speak of",
  why:
    "A reader without the writer's context must find out what each pointing word stands for. Well-kept projects of " +
    "the field have 3 to 5 such words in 100.",
  mend:
    "Name the subject: leader, standby, agent, task, batch, segment, user. One fact a sentence. Rewrite for a reader, " +
    "not for the counter.",
  check: (tree) => {
    const byFolder = countsOf(tree);
    const all = byFolder.get("") ?? { words: 0, pointing: 0 };
    return [...byFolder].flatMap(([folder, count]) => {
      const max = count === all ? POINTING_SHARE_MAX : POINTING_SHARE_MAX_IN_A_FOLDER;
      const share = count.pointing / count.words;
      if (share <= max || (count !== all && count.words < FOLDER_WORDS_MIN)) return [];
      const found = `${(100 * share).toFixed(1)} % of ${count.words} words point`;
      return [
        { path: folder === "" ? "the repository" : folder, found: `${found}, at most ${100 * max} % may` },
      ];
    });
  },
};

/** Of each folder, with all below it; the whole under "". */
function countsOf({ files }: Tree): Map<string, Count> {
  const byFolder = new Map<string, Count>();
  for (const file of files.filter(isProse)) {
    const sentences = sentencesOf(file);
    const words = sum(sentences, ({ text }) => wordsOf(text).length);
    const pointing = sum(sentences, ({ text }) => pointingWordsOf(text).length);
    for (const folder of foldersAbove(file.path)) {
      const count = byFolder.get(folder) ?? { words: 0, pointing: 0 };
      byFolder.set(folder, count);
      count.words += words;
      count.pointing += pointing;
    }
  }
  return byFolder;
}

/** `a/b/c.ts` → "", "a", "a/b". */
function foldersAbove(path: string): string[] {
  const parts = path.split("/").slice(0, -1);
  return ["", ...parts.map((_, at) => parts.slice(0, at + 1).join("/"))];
}

function sum(sentences: readonly Sentence[], count: (sentence: Sentence) => number): number {
  return sentences.reduce((all, each) => all + count(each), 0);
}

const testNameRule: Rule = {
  name: "names of tests name what they speak of",
  why: "A failed test is read by its name alone, in a log, far from the code. A pointing word has nothing to point at.",
  mend: "Name the subject and the expected behaviour: `keeps the task`, not `keeps it`.",
  check: ({ files }) => {
    const names = files
      .filter(({ path }) => isCode(path) && path.startsWith("test/"))
      .flatMap((file) =>
        testNamesOf(file).map(({ text, line }) => ({
          path: file.path,
          line,
          text,
          words: wordsOf(text).length,
          pointing: pointingWordsOf(text).length,
        })),
      );
    if (names.length === 0) return [{ path: "test", found: "no name of a test was found" }];
    const words = names.reduce((all, each) => all + each.words, 0);
    const share = names.reduce((all, each) => all + each.pointing, 0) / words;
    if (share <= POINTING_SHARE_MAX_IN_TEST_NAMES) return [];
    const found = `${(100 * share).toFixed(1)} % of ${words} words point, at most ${100 * POINTING_SHARE_MAX_IN_TEST_NAMES} % may`;
    const worst = names.sort((a, b) => b.pointing - a.pointing).slice(0, TEST_NAMES_SHOWN);
    return [
      { path: "test", found },
      ...worst.map(({ path, line, text }) => ({ path, line, found: `"${text}"` })),
    ];
  },
};

const sentenceRule: Rule = {
  name: `no sentence of a comment or a page has more than ${SENTENCE_WORDS_MAX} words`,
  why: "A longer sentence is read twice, or not at all. Many readers do not have English as their first language.",
  mend: "Make two sentences of it, each with one fact and its own subject.",
  check: ({ files }) =>
    files.filter(isProse).flatMap((file) =>
      sentencesOf(file).flatMap(({ text, line }): Violation[] => {
        const count = wordsOf(text).length;
        return count <= SENTENCE_WORDS_MAX ? [] : [{ path: file.path, line, found: `has ${count} words` }];
      }),
    ),
};

export const proseRules: readonly Rule[] = [pointingRule, testNameRule, sentenceRule];
