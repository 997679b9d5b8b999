// Bundles the dashboard's page (src/dashboard/page) for browsers. The server sends the files as they are: an
// installed package needs no build step. Chunks are loaded when their view is opened.

import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join, sep } from "node:path";
import { type BuildFailure, buildSync, formatMessagesSync } from "esbuild";

/** Below dist. */
const FOLDER = "dashboard";
const copied = ["index.html", "icon.svg"];

/** @param root the folder of package.json · @param out beside which the folder of the page is made
 *  @returns ok without a page: a fixture has none */
export function buildPage(root: string, out: string): { readonly ok: boolean; readonly printed: string } {
  const from = join(root, "src/dashboard/page");
  const to = join(out, FOLDER);
  rmSync(to, { recursive: true, force: true });
  if (!existsSync(join(from, "main.ts"))) return { ok: true, printed: "" };
  mkdirSync(to, { recursive: true });
  try {
    buildSync({
      absWorkingDir: root,
      entryPoints: [
        { in: join(from, "main.ts"), out: "app" },
        { in: join(from, "app.css"), out: "app" },
      ],
      outdir: to,
      bundle: true,
      minify: true,
      splitting: true,
      format: "esm",
      target: ["chrome110", "firefox115", "safari16.4"],
      chunkNames: "[name]-[hash]",
      legalComments: "none",
      logLevel: "silent",
    });
  } catch (error) {
    const { errors = [] } = error as Partial<BuildFailure>;
    return { ok: false, printed: formatMessagesSync(errors, { kind: "error" }).join("") || String(error) };
  }
  for (const name of copied) copyFileSync(join(from, name), join(to, name));
  return { ok: true, printed: "" };
}

/** @param file relative to dist */
export function isOfPage(file: string): boolean {
  return file.startsWith(`${FOLDER}${sep}`);
}
