// Bundles the modules of src and machines for Node. Each entry stands alone, and code of several entries is in chunks
// that all share: the program and the library of one process hold each module once. A command line that reads few
// files starts in half the time of one that reads a file per module.

import { readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { type BuildFailure, buildSync, formatMessagesSync } from "esbuild";

/** Below dist. */
const CHUNKS = "chunks";
/** Dependencies in the bundle: three hundred files that each start would read. XState stays outside, because programs
 *  run the published machines with their own XState. */
const bundled = ["zod", "rxjs", "commander", "pino", "@nats-io/transport-node", "@nats-io/nkeys"];
/** The modules of RxJS: Node would take its CommonJS, of which a bundler must keep all. */
const RXJS_MODULES = "node_modules/rxjs/dist/esm/index.js";
/** CommonJS in the bundle requires modules of Node. */
const REQUIRE =
  'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);';

interface PackageJson {
  readonly exports?: Readonly<Record<string, string | { readonly default: string }>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/**
 * The entries are the exports of the package.
 * @param root the folder of package.json · @param out the folder to write to, beside dist
 */
export function buildModules(root: string, out: string): { readonly ok: boolean; readonly printed: string } {
  const {
    exports = {},
    dependencies,
    peerDependencies,
  } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as PackageJson;
  const files = Object.values(exports).map((entry) => (typeof entry === "string" ? entry : entry.default));
  try {
    buildSync({
      absWorkingDir: root,
      entryPoints: files.filter((file) => file.endsWith(".js")).map(sourceOf),
      outbase: root,
      outdir: out,
      bundle: true,
      splitting: true,
      sourcemap: true,
      sourcesContent: false,
      platform: "node",
      format: "esm",
      target: "node20.19",
      external: Object.keys({ ...dependencies, ...peerDependencies }).filter(
        (name) => !bundled.includes(name),
      ),
      alias: { rxjs: join(root, RXJS_MODULES) },
      banner: { js: REQUIRE },
      chunkNames: `${CHUNKS}/[name]-[hash]`,
      legalComments: "inline",
      logLevel: "silent",
    });
  } catch (error) {
    const { errors = [] } = error as Partial<BuildFailure>;
    return { ok: false, printed: formatMessagesSync(errors, { kind: "error" }).join("") || String(error) };
  }
  return { ok: true, printed: "" };
}

/** `./dist/src/index.js` → `src/index.ts`. */
function sourceOf(file: string): string {
  return file.replace(/^\.\/dist\//, "").replace(/\.js$/, ".ts");
}

/** @param file relative to dist */
export function isChunk(file: string): boolean {
  return file.startsWith(`${CHUNKS}${sep}`);
}
