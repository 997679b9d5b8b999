// The kinds of work the demo's agents do, as plain functions of a file's name and bytes.

import { createHash } from "node:crypto";

export const demoKinds = ["count", "digest", "outline"] as const;
export type DemoKind = (typeof demoKinds)[number];

/** Result of one task: the fields of its line in results.ndjson. */
export type DemoResult =
  | { readonly lines: number; readonly words: number; readonly bytes: number }
  | { readonly sha256: string }
  | { readonly headings: readonly string[]; readonly exports: readonly string[] };

export const demoWork: Readonly<Record<DemoKind, (file: string, bytes: Buffer) => DemoResult>> = {
  count: (_, bytes) => count(bytes),
  digest: (_, bytes) => ({ sha256: createHash("sha256").update(bytes).digest("hex") }),
  outline,
};

const SEPARATORS = /[\t-\r\p{Zs}\u2060]+/u;
// biome-ignore lint/suspicious/noControlCharactersInRegex: what wc does not take for printable
const PRINTABLE = /[^\u0000-\u001f\u007f-\u009f\ufffd]/u;

/** As `wc` counts where text is UTF-8: line ends; runs between white space with something printable; bytes. */
export function count(bytes: Buffer): { lines: number; words: number; bytes: number } {
  let lines = 0;
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) lines += 1;
  const runs = bytes.toString("utf8").split(SEPARATORS);
  return { lines, words: runs.filter((run) => PRINTABLE.test(run)).length, bytes: bytes.length };
}

export function outline(file: string, bytes: Buffer): { headings: string[]; exports: string[] } {
  const text = bytes.toString("utf8");
  return {
    headings: /\.(?:md|markdown)$/i.test(file) ? headingsOf(text) : [],
    exports: /\.[cm]?[jt]sx?$/i.test(file) ? exportsOf(text) : [],
  };
}

const FENCE = /^\s*(?:>\s?)*(?<fence>`{3,}|~{3,})(?<rest>.*)$/;
const HEADING = /^ {0,3}#{1,6}(?:[ \t]+(?<title>.*?))?(?:[ \t]+#+)?[ \t]*$/;
/** Marks the paragraph above as a heading. */
const UNDERLINE = /^ {0,3}(?:=+|-+)[ \t]*$/;
/** Lines that begin no paragraph: blank, quoted, of a list, a rule, indented code, HTML, of a table. */
const NO_PARAGRAPH = /^\s*$|^ {4}|^\t|^ {0,3}(?:>|[-+*][ \t]|\d{1,9}[.)][ \t]|<|\||(?:[-*_][ \t]*){3,}$)/;
const FRONT_MATTER = /^---[ \t]*\r?\n(?:[^\n]*\n)*?---[ \t]*(?:\r?\n|$)/;

/** Titles of headings, with `#` or underlined, outside front matter and fenced code. */
export function headingsOf(markdown: string): string[] {
  const headings: string[] = [];
  let open: string | undefined;
  let paragraph: string[] = [];
  for (const line of markdown.replace(FRONT_MATTER, "").split(/\r?\n/)) {
    const above = paragraph;
    paragraph = [];
    const { fence, rest = "" } = FENCE.exec(line)?.groups ?? {};
    if (open !== undefined) {
      if (fence?.startsWith(open) === true && rest.trim() === "") open = undefined;
    } else if (fence !== undefined && !(fence.startsWith("`") && rest.includes("`"))) {
      open = fence;
    } else {
      const heading = HEADING.exec(line);
      if (heading !== null) headings.push(heading.groups?.["title"] ?? "");
      else if (above.length > 0 && UNDERLINE.test(line)) headings.push(above.join(" "));
      else if (!NO_PARAGRAPH.test(above.length > 0 ? line.trimStart() : line)) {
        above.push(line.trim());
        paragraph = above;
      }
    }
  }
  return headings;
}

/** Comments, strings, templates and regular expressions: their word `export` is no export. */
const NOT_CODE =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`|(?<=(?:^|[(,=:[!&|?{};])\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/gm;

const DECLARATION =
  /(?:^|[;}])\s*export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:const\s+enum|function\s*\*?|class|interface|type|enum|namespace|module|const|let|var)\s+(?<name>[\w$]+)/gm;
const PATTERN = /(?:^|[;}])\s*export\s+(?:const|let|var)\s*[{[](?<names>[^}\]]*)[}\]]\s*=/gm;
const LIST = /(?:^|[;}])\s*export\s+(?:type\s+)?\{(?<names>[^}]*)\}/gm;
const NAMESPACE = /(?:^|[;}])\s*export\s+(?:type\s+)?\*\s+as\s+(?<name>[\w$]+)/gm;
const DEFAULT = /(?:^|[;}])\s*export\s+(?<name>default)\b/gm;

/** Names a module exports, each once, in alphabetical order. `export *` names none. */
export function exportsOf(source: string): string[] {
  const code = source.replace(NOT_CODE, '""');
  const names = new Set<string>();
  for (const single of [DECLARATION, NAMESPACE, DEFAULT]) {
    for (const match of code.matchAll(single)) names.add(match.groups?.["name"] ?? "");
  }
  for (const match of code.matchAll(LIST)) addAll(names, match.groups?.["names"], /\bas\s+/);
  for (const match of code.matchAll(PATTERN)) addAll(names, match.groups?.["names"], /:\s*/);
  names.delete("");
  return [...names].sort();
}

/** `a, type B, c as d`, or of a pattern `a, b: c, d = 1, ...rest`: the name the outside sees. */
function addAll(names: Set<string>, list = "", renamedBy: RegExp): void {
  for (const item of list.split(",")) {
    const name = item
      .split(renamedBy)
      .at(-1)
      ?.replace(/^\s*(?:type\s+(?=[\w$])|\.\.\.)/, "")
      .replace(/=.*$/s, "")
      .trim();
    if (name !== undefined && /^[\w$]+$/.test(name)) names.add(name);
  }
}
