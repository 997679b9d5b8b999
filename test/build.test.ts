// `npm run build` beside processes that run from dist: they find each file whole at any time, the old one or the new.

import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { build } from "../scripts/build.ts";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "waggle-build-"));
  const options = {
    target: "es2022",
    module: "nodenext",
    strict: true,
    noEmitOnError: false,
    types: [],
    lib: ["es2022"],
  };
  entries("main");
  write("tsconfig.build.json", {
    compilerOptions: {
      ...options,
      ...{ rootDir: ".", incremental: true, rewriteRelativeImportExtensions: true },
      ...{ declaration: true, emitDeclarationOnly: true },
    },
    include: ["src"],
  });
  mkdirSync(join(root, "node_modules"));
  const typescript = fileURLToPath(new URL("../node_modules/typescript", import.meta.url));
  symlinkSync(typescript, join(root, "node_modules/typescript"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, content: unknown): void {
  mkdirSync(join(root, path, ".."), { recursive: true });
  writeFileSync(join(root, path), typeof content === "string" ? content : JSON.stringify(content));
}

/** The package exports these modules of src. */
function entries(...names: readonly string[]): void {
  const exports = Object.fromEntries(names.map((name) => [`./${name}`, `./dist/src/${name}.js`]));
  write("package.json", { type: "module", exports });
}

const compiled = (file: string) => join(root, "dist/src", file);

/** Starts process after process on a file of dist, as a coordinator starts threads, until it is stopped. */
const reader = `
  import { spawnSync } from "node:child_process";
  process.once("message", () => process.exit(0));
  for (;;) {
    const { status, stdout } = spawnSync(process.execPath, [process.argv[1]], { encoding: "utf8" });
    process.send({ status, stdout });
    await new Promise((resolve) => setImmediate(resolve));
  }`;

function startReader(file: string): ChildProcess {
  return spawn(process.execPath, ["--input-type=module", "-e", reader, file], {
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
}

it("leaves no moment without a whole file, and touches only what changed", async () => {
  const change = (version: number) => write("src/version.ts", `export const version: number = ${version};\n`);
  write("src/main.ts", 'import { version } from "./version.ts";\nconsole.log("version", version);\n');
  write("src/steady.ts", "export const steady: number = 1;\n");
  entries("main", "steady", "gone");
  write("src/console.d.ts", "declare const console: { log(...words: unknown[]): void };\n");
  write("src/gone.ts", "export const gone: number = 1;\n");
  change(0);
  expect(build(root)).toEqual({ ok: true, printed: "" });
  const inode = statSync(compiled("steady.js")).ino;

  const seen: { status: number | null; stdout: string }[] = [];
  const child = startReader(compiled("main.js"));
  child.on("message", (message) => seen.push(message as (typeof seen)[number]));
  rmSync(join(root, "src/gone.ts"));
  entries("main", "steady");
  for (const version of [1, 2]) {
    change(version);
    expect(build(root).ok).toBe(true);
    const { length } = seen;
    while (seen.length < length + 2) await once(child, "message");
  }
  const ended = once(child, "exit");
  child.send("stop");
  await ended;

  for (const { status, stdout } of seen) {
    expect(status).toBe(0);
    expect(stdout).toMatch(/^version [0-2]\n$/);
  }
  expect(seen.at(-1)?.stdout).toBe("version 2\n");
  expect(statSync(compiled("steady.js")).ino).toBe(inode);
  for (const file of ["gone.js", "gone.d.ts"]) expect(existsSync(compiled(file)), file).toBe(false);
});

it("keeps the chunks of an older build for a process that loads a chunk late, and removes them after a day", async () => {
  const chunks = () => readdirSync(join(root, "dist/chunks")).filter((name) => name.endsWith(".js"));
  write(
    "src/main.ts",
    'process.send("ready");\nawait new Promise<void>((go) => process.once("message", go));\nawait import("./late.ts");\n',
  );
  write("src/late.ts", 'process.send("the first");\nprocess.disconnect();\n');
  write("src/process.d.ts", "declare const process: any;\n");
  expect(build(root)).toEqual({ ok: true, printed: "" });
  const older = chunks();
  const child = fork(compiled("main.js"));
  await once(child, "message");
  const said = once(child, "message");
  write("src/late.ts", 'process.send("the second");\nprocess.disconnect();\n');
  expect(build(root).ok).toBe(true);
  child.send("go");
  expect((await said)[0]).toBe("the first");

  expect(chunks()).toEqual(expect.arrayContaining(older));
  const yesterday = Date.now() / 1_000 - 90_000;
  for (const name of older) utimesSync(join(root, "dist/chunks", name), yesterday, yesterday);
  expect(build(root).ok).toBe(true);
  expect(chunks().filter((name) => older.includes(name))).toEqual([]);
});

it("builds nothing while sources and dist are unchanged", () => {
  write("src/main.ts", "export const version: number = 1;\n");
  expect(build(root).ok).toBe(true);
  const compiler = join(root, "node_modules/typescript");
  const hidden = join(root, "node_modules/hidden");
  renameSync(compiler, hidden);
  expect(build(root), "unchanged").toEqual({ ok: true, printed: "" });
  renameSync(hidden, compiler);

  rmSync(compiled("main.js"));
  expect(build(root).ok).toBe(true);
  expect(existsSync(compiled("main.js")), "a file of dist was removed").toBe(true);
  writeFileSync(compiled("main.js"), "");
  expect(build(root).ok).toBe(true);
  expect(readFileSync(compiled("main.js"), "utf8"), "a file of dist was changed").toContain("version");
  write("src/main.ts", "export const version: number = 2;\n");
  expect(build(root).ok).toBe(true);
  expect(readFileSync(compiled("main.js"), "utf8"), "a source was changed").toContain("version = 2");
});

it("tells of errors, and writes what could be compiled all the same", () => {
  write("src/main.ts", 'export const count: number = "text";\n');
  const { ok, printed } = build(root);
  expect(ok).toBe(false);
  expect(printed).toContain("src/main.ts(1,14): error TS2322");
  expect(readFileSync(compiled("main.js"), "utf8")).toContain('count = "text"');
  expect(build(root).printed, "again").toContain("error TS2322");
});
