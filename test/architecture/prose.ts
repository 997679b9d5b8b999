// The prose of the repository: comments and docstrings of code, and pages of the docs, cut into sentences; and names of
// tests.
// Code spans, links and fenced examples are no prose.

import { lineAt, type SourceFile, withoutComments } from "./source-tree.ts";

export interface Sentence {
  readonly text: string;
  /** Line of the first word, from 1. */
  readonly line: number;
}

/** Words that point at a thing instead of naming it. */
const pointing = new Set(
  (
    "who whom whose that those these this it its one ones what which there somebody anybody nobody other another " +
    "they them he him such"
  ).split(" "),
);

/** A run of prose: comment lines that belong together, a paragraph, an item of a list, a cell of a table. */
interface Passage {
  readonly text: string;
  readonly line: number;
}

export function wordsOf(text: string): string[] {
  return text.match(/[A-Za-z][A-Za-z'’]*/g) ?? [];
}

export function pointingWordsOf(text: string): string[] {
  return wordsOf(text).filter((word) => pointing.has(word.toLowerCase()));
}

export function sentencesOf(file: SourceFile): Sentence[] {
  return passagesOf(file).flatMap(sentencesIn);
}

function passagesOf({ path, text }: SourceFile): Passage[] {
  if (path.endsWith(".md")) return passagesOfPage(text);
  return path.endsWith(".py") ? passagesOfPython(text) : passagesOfCode(text);
}

/** The first arguments of `describe`, `it` and `test`, also behind `.each(…)`, `.runIf(…)` and the like. */
export function testNamesOf({ text, code }: SourceFile): Sentence[] {
  return [...code.matchAll(/(?<![\w.$])(?:describe|it|test)\b/g)].flatMap((match) => {
    const from = nameStart(code, match.index + match[0].length);
    const quote = code[from];
    if (quote !== '"' && quote !== "`") return [];
    const name = text.slice(from + 1, code.indexOf(quote, from + 1));
    // Placeholders and expressions are no words.
    const plain = name.replace(/%[#sdifjoO]|\$\{[^}]*\}|\$\w+|`[^`]*`/g, "_");
    return [{ text: plain, line: lineAt(text, from) }];
  });
}

const testModifiers = /\s*\.(?:concurrent|each|for|only|runIf|sequential|skip|skipIf|todo)\b/y;

/** Where the arguments of the last call of a chain begin, as in `it.each(rows)("adds %i")`; −1 if nothing is called. */
function nameStart(code: string, from: number): number {
  let at = from;
  for (;;) {
    testModifiers.lastIndex = at;
    if (testModifiers.test(code)) at = testModifiers.lastIndex;
    else if (code[at] === "`") at = code.indexOf("`", at + 1) + 1;
    else if (code[at] !== "(") return -1;
    else {
      const end = endOfBrackets(code, at);
      if (code[end] !== "(") return at + 1 + code.slice(at + 1).search(/\S/);
      at = end;
    }
  }
}

function endOfBrackets(code: string, from: number): number {
  let depth = 0;
  for (let at = from; at < code.length; at += 1) {
    if (code[at] === "(") depth += 1;
    if (code[at] === ")") depth -= 1;
    if (depth === 0) return at + 1;
  }
  return code.length;
}

function sentencesIn({ text, line }: Passage): Sentence[] {
  const sentences: Sentence[] = [];
  const plain = text
    .replace(/`[^`]*`/g, (span) => span.replace(/[^\n]/g, "_"))
    .replace(/\]\([^)]*\)/g, (link) => link.replace(/[^\n]/g, "_"));
  let from = 0;
  for (const end of [...plain.matchAll(/[.?!](?=["”)*_]*\s)|$/g)].map(({ index }) => index + 1)) {
    const part = plain.slice(from, end);
    if (wordsOf(part).length > 0) {
      const before = plain.slice(0, from + part.search(/\S/));
      sentences.push({ text: part.trim().replace(/\s+/g, " "), line: line + before.split("\n").length - 1 });
    }
    from = end;
  }
  return sentences;
}

function passagesOfCode(text: string): Passage[] {
  const lines = text.split("\n");
  const bare = withoutComments(text).split("\n");
  const passages: Passage[] = [];
  let open: string[] = [];
  const close = (at: number) => {
    if (open.length > 0) passages.push({ text: open.join("\n"), line: at - open.length + 1 });
    open = [];
  };
  for (const [at, line] of lines.entries()) {
    const code = bare[at] ?? "";
    const comment = line.slice(code.trimEnd().length).trim();
    const words = comment.replace(/^(?:\/\/+|\/\*+|\*(?!\/))\s?|\*\/\s*$/g, "").replace(/\*\/\s*$/, "");
    const isDirective = /^(?:biome-ignore|@ts-|#!|v8 |---)/.test(words.trim()) || /^\s{2,}/.test(words);
    const begins = comment.startsWith("/*") || /^\s*(?:[-·*]|\d+\.|@\w+)\s/.test(words) || code.trim() !== "";
    if (comment === "" || isDirective || words.trim() === "") {
      close(at);
      continue;
    }
    if (begins) close(at);
    open.push(words.replace(/^\s*@(?:param|returns|throws)\b/, ""));
  }
  close(lines.length);
  return passages;
}

/** Docstrings and comments that have a line of their own. A blank line ends a passage; code examples are no prose. */
function passagesOfPython(text: string): Passage[] {
  const passages: Passage[] = [];
  let open: string[] = [];
  let isDocstring = false;
  let indent = 0;
  const lines = text.split("\n");
  const close = (at: number) => {
    if (open.length > 0) passages.push({ text: open.join("\n"), line: at - open.length + 1 });
    open = [];
  };
  for (const [at, line] of lines.entries()) {
    const quotes = line.split('"""').length - 1;
    const begins: boolean = !isDocstring && /^\s*[rbu]?"""/.test(line);
    const isProse = isDocstring || begins || /^\s*# /.test(line);
    const words = line.replace(/^\s*(?:# |[rbu]?""")?/, "").replace(/"""\s*$/, "");
    if (begins) indent = line.search(/\S/);
    if (isDocstring || begins) isDocstring = begins ? quotes === 1 : quotes === 0;
    const isExample = !begins && line.search(/\S/) > indent && !/^\s*# /.test(line);
    if (!isProse || words.trim() === "" || isExample) close(at);
    else {
      if (begins || /^(?:[-*:]|\d+\.|@)\s?\w/.test(words)) close(at);
      open.push(words.replace(/^@(?:param|returns|raises)\b/, ""));
    }
  }
  close(lines.length);
  return passages;
}

function passagesOfPage(text: string): Passage[] {
  const passages: Passage[] = [];
  let open: string[] = [];
  let isCode = false;
  const lines = text.split("\n");
  const close = (at: number) => {
    if (open.length > 0) passages.push({ text: open.join("\n"), line: at - open.length + 1 });
    open = [];
  };
  for (const [at, line] of lines.entries()) {
    const isFence = /^\s*(?:```|~~~)/.test(line);
    if (isFence) isCode = !isCode;
    if (isFence || isCode || line.trim() === "" || /^\s*<!--/.test(line)) {
      close(at);
      continue;
    }
    if (/^\s*\|/.test(line)) {
      close(at);
      for (const cell of line.split(/(?<!\\)\|/)) passages.push({ text: cell, line: at + 1 });
      continue;
    }
    if (/^\s*(?:[-*+]|\d+\.|#+)\s/.test(line)) close(at);
    open.push(line);
  }
  close(lines.length);
  return passages;
}
