// Reads the repository's files for the rules: text, code without comments and strings, and imports. A scanner, not a
// parser: TypeScript 7 has no compiler API for JavaScript. `code` has the same lines and columns as `text`, so
// positions agree.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export interface Import {
  readonly specifier: string;
  readonly line: number;
  /** `import type`, `export type … from`: gone at run time. */
  readonly typeOnly: boolean;
  /** Whether the statement re-exports: `export … from`. */
  readonly reExport: boolean;
  /** `import(…)`: loaded when its line runs, not with the file. */
  readonly late: boolean;
  /** Imported local names, without namespaces. */
  readonly names: readonly string[];
}

export interface SourceFile {
  /** From the root of the repository, with `/`. */
  readonly path: string;
  readonly text: string;
  /** `text` with comments and the contents of strings, templates and regular expressions blanked. */
  readonly code: string;
  readonly imports: readonly Import[];
}

export interface Tree {
  readonly files: readonly SourceFile[];
}

export const repositoryRoot: string = fileURLToPath(new URL("../..", import.meta.url));

const skippedFolders = new Set(["node_modules", "dist", "coverage"]);
/** In a linked working tree of git, a file with the repository's path. */
const skippedFiles = new Set([".git"]);
/** Listed without their contents, as targets of links. */
const pictureExtension = /\.png$/;
const readExtensions = /\.(ts|js|mjs|json|ya?ml|md|py|sh|svg|txt)$|(^|\/)(Dockerfile|LICENSE|run|\.[a-z]+)$/;

/** Every text file and picture of the checkout, tracked or not; no generated or installed files. */
export function readTree(root: string = repositoryRoot): Tree {
  const files: SourceFile[] = [];
  const visit = (folder: string) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      const hidden = entry.name.startsWith(".") && entry.name !== ".ci" && entry.isDirectory();
      if (entry.isDirectory() && !hidden && !skippedFolders.has(entry.name)) visit(path);
      if (entry.isFile() && pictureExtension.test(path)) files.push(sourceFile(path, ""));
      if (entry.isFile() && readExtensions.test(path) && !skippedFiles.has(path)) {
        files.push(sourceFile(path, readFileSync(join(root, path), "utf8")));
      }
    }
  };
  visit("");
  return { files };
}

/** A file as the rules see it; also for fixtures. */
export function sourceFile(path: string, text: string): SourceFile {
  const typescript = /\.(ts|js|mjs)$/.test(path);
  return {
    path,
    text,
    code: typescript ? blank(text, "all") : text,
    imports: typescript ? importsOf(text) : [],
  };
}

/** The text with blanked comments. */
export function withoutComments(text: string): string {
  return blank(text, "comments");
}

export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

// --- imports -----------------------------------------------------------------------------------------

const statement =
  /^[ \t]*(import|export)\s+(type\s+)?(?:([^"'`;()=]*?)\s*from\s*)?(["'])([^"'\n]+)\4|\bimport\(\s*(["'])([^"'\n]+)\6/gm;

function importsOf(text: string): Import[] {
  const found: Import[] = [];
  for (const match of blank(text, "comments").matchAll(statement)) {
    const [whole, keyword, type, clause = "", , fixed, , dynamic] = match;
    const specifier = fixed ?? dynamic;
    if (specifier === undefined) continue;
    const offset = match.index + (whole.length - whole.trimStart().length);
    found.push({
      specifier,
      line: lineAt(text, offset),
      typeOnly: type !== undefined || isAllTypes(clause),
      reExport: keyword === "export",
      late: fixed === undefined,
      names: namesIn(clause),
    });
  }
  return found;
}

function bracedItems(clause: string): string[] {
  const inside = /\{([^}]*)\}/.exec(clause)?.[1] ?? "";
  return inside.split(",").flatMap((item) => (item.trim() === "" ? [] : [item.trim()]));
}

/** `import { type A, type B } from` brings nothing at run time either. */
function isAllTypes(clause: string): boolean {
  const items = bracedItems(clause);
  return clause.startsWith("{") && items.length > 0 && items.every((item) => item.startsWith("type "));
}

function namesIn(clause: string): string[] {
  return bracedItems(clause).map((item) =>
    item
      .replace(/^type\s+/, "")
      .replace(/^.*\sas\s+/, "")
      .trim(),
  );
}

// --- blanking ----------------------------------------------------------------------------------------

type Blanking = "comments" | "all";

/** Replaces everything except code by spaces; line breaks stay. */
function blank(text: string, what: Blanking): string {
  const out = text.split("");
  const wipe = (from: number, to: number) => {
    for (let at = from; at < to; at++) if (out[at] !== "\n") out[at] = " ";
  };
  /** Depth of braces at which each open `${` of a template ends. */
  const templates: number[] = [];
  let braces = 0;
  let at = 0;

  const skipTemplate = () => {
    const from = at;
    while (at < text.length && text[at] !== "`" && !text.startsWith("${", at))
      at += text[at] === "\\" ? 2 : 1;
    if (what === "all") wipe(from, Math.min(at, text.length));
    if (text[at] === "`") at += 1;
    else if (at < text.length) {
      templates.push(braces);
      braces += 1;
      at += 2;
    }
  };

  while (at < text.length) {
    const char = text[at];
    if (text.startsWith("//", at) || (at === 0 && text.startsWith("#!"))) {
      const end = endOfLine(text, at);
      wipe(at, end);
      at = end;
    } else if (text.startsWith("/*", at)) {
      const end = endOfBlockComment(text, at);
      wipe(at, end);
      at = end;
    } else if (char === '"' || char === "'") {
      const end = endOfQuoted(text, at);
      if (what === "all") wipe(at + 1, end - 1);
      at = end;
    } else if (char === "/" && startsRegex(text, at)) {
      const end = endOfRegex(text, at);
      if (what === "all") wipe(at + 1, end - 1);
      at = end;
    } else if (char === "`") {
      at += 1;
      skipTemplate();
    } else if (char === "}" && templates.at(-1) === braces - 1) {
      templates.pop();
      braces -= 1;
      at += 1;
      skipTemplate();
    } else {
      if (char === "{") braces += 1;
      if (char === "}") braces -= 1;
      at += 1;
    }
  }
  return out.join("");
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}

function endOfBlockComment(text: string, from: number): number {
  const end = text.indexOf("*/", from + 2);
  return end === -1 ? text.length : end + 2;
}

function endOfQuoted(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== text[from] && text[at] !== "\n") at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function endOfRegex(text: string, from: number): number {
  let inClass = false;
  let at = from + 1;
  while (at < text.length && text[at] !== "\n" && (inClass || text[at] !== "/")) {
    if (text[at] === "[") inClass = true;
    if (text[at] === "]") inClass = false;
    at += text[at] === "\\" ? 2 : 1;
  }
  return at + 1;
}

/** A slash divides after a value and opens a regular expression elsewhere. */
function startsRegex(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - 40), at).trimEnd();
  if (before === "") return true;
  return /(?:[([{,;=:!&|?+\-*%~^<>]|\b(?:return|typeof|case|in|of|do|else|await|yield|throw))$/.test(before);
}
