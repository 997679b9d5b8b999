// Bundles the simulator and the simulated code into a file, with a planted bug.

import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { type Mutant, mutated } from "./mutant.ts";

const root = resolve(import.meta.dirname, "../..");

/**
 * Bundles `entry`, a path under the project's root. Packages are not bundled, so the file must lie where Node finds
 * packages.
 * @throws RangeError when the bug cannot be planted
 */
export async function bundle(entry: string, outfile: string, mutant: Mutant): Promise<void> {
  let isPlanted = false;
  await build({
    entryPoints: [join(root, entry)],
    outfile,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    packages: "external",
    sourcemap: "inline",
    logLevel: "silent",
    plugins: [
      {
        name: "planted bug",
        setup({ onLoad }) {
          const file = join(root, mutant.file);
          onLoad({ filter: /\.ts$/ }, async ({ path }) => {
            if (path !== file) return undefined;
            isPlanted = true;
            return { contents: mutated(mutant, await readFile(path, "utf8")), loader: "ts" };
          });
        },
      },
    ],
  });
  if (!isPlanted) throw new RangeError(`${mutant.name}: ${entry} never loads ${mutant.file}`);
}
