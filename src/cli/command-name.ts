// The command as started by the user: `npx waggle`, `waggledance`, `node bin/waggle.js`. Source texts say `waggle
// VERB`; on output `asStarted` replaces `waggle` by the started command, so that users can copy hints.

import { basename, delimiter, dirname, relative, sep } from "node:path";
import type { Shell } from "./shell.ts";

/** Names of the command, as in package.json's `bin`. */
export const binNames = ["waggle", "waggledance"] as const;

type Started = Pick<Shell, "env" | "script" | "cwd">;

/** The text to type for the command, without the verb. */
export function commandName({ env, script, cwd }: Started): string {
  const name = basename(script).replace(/\.js$/, "");
  const folder = dirname(script);
  if (env["npm_command"] === "exec") return `npx ${packageFlag(env)}${name}`;
  if (env["npm_lifecycle_event"] !== undefined && isNpmsOwn(script, env)) return `npx ${name}`;
  if (script.endsWith(".js")) return `node ${quoted(shortest(script, cwd))}`;
  const path = env["PATH"];
  if (path === undefined || path.split(delimiter).includes(folder)) return name;
  const shown = shortest(script, cwd);
  return quoted(shown.startsWith(sep) || shown.startsWith(".") ? shown : `.${sep}${shown}`);
}

/** Returns a function to replace `waggle` by the started command, if a verb of `verbs` or a flag follows. A text with
 *  the started command stays unchanged. */
export function asStartedBy(shell: Started, verbs: readonly string[]): (text: string) => string {
  const command = commandName(shell);
  if (command === "waggle") return (text) => text;
  const prefix = command.endsWith("waggle") ? command.slice(0, -"waggle".length) : "";
  const isNew = prefix === "" ? "" : `(?<!${prefix.replace(/[^\w ]/g, "\\$&")})`;
  const pattern = new RegExp(
    `(?<![\\w./-])(?<!--[\\w-]+ )${isNew}waggle(?= (?:(?:${verbs.join("|")}|help)\\b|--))`,
    "g",
  );
  return (text) => text.replace(pattern, () => command);
}

/** `npx -p FILE waggle` finds no package from a registry under the same name. */
function packageFlag(env: Started["env"]): string {
  const wanted = env["npm_config_package"] ?? "";
  return /^[\w@.:/-]+$/.test(wanted) ? `--package=${wanted} ` : "";
}

/** A command of an installed package, or a script of the package in npm's working folder (`npm start`). */
function isNpmsOwn(script: string, env: Started["env"]): boolean {
  const manifest = env["npm_package_json"];
  const isInstalled = dirname(script).endsWith(`node_modules${sep}.bin`);
  return isInstalled || (manifest !== undefined && dirname(dirname(script)) === dirname(manifest));
}

function shortest(script: string, cwd: string): string {
  const path = relative(cwd, script);
  return path.startsWith("..") ? script : path;
}

function quoted(path: string): string {
  return /^[\w@%+=:,./\\-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
