// Removes each check of the leader, and each protection of the generated configuration, in turn, in a copy of the
// project: a case of `npm run test:security` must fail. Takes minutes, so it is no part of CI. `npm run
// test:security-mutants -- [WORD]` runs all mutants, or those with the word in their name. The permissions have a test
// of their own (attacks.test.ts: no entry may become wider).

import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { readFlags } from "../support/script-flags.ts";

interface Mutant {
  readonly name: string;
  readonly file: string;
  /** Exact text, which the file has once. */
  readonly from: string;
  readonly to: string;
  /** Test file in test/security that runs first. If the file passes with the mutant, the other files run. */
  readonly test: "leader-checks" | "replies" | "attacks" | "expired";
}

const grants = "src/state/grant.ts";
const rules = "src/core/grant-rules.ts";
const owners = "src/requests/inbox-owners.ts";
const handlers = "src/requests/project-handlers.ts";
const admission = "src/core/admission.ts";
const queries = "src/coordinator/queries/queries.ts";
const config = "src/auth/server-config.ts";

const never = (condition: string) => ({ from: `if (${condition}`, to: `if (false && ${condition}` });

const mutants: readonly Mutant[] = [
  // --- 1.1 grants
  { name: "grant: kinds", file: grants, ...never("!kinds.includes(kind))"), test: "leader-checks" },
  { name: "grant: roles", file: grants, ...never("roles !== undefined"), test: "leader-checks" },
  { name: "grant: types", file: grants, ...never("types !== undefined"), test: "leader-checks" },
  { name: "grant: labels", file: grants, ...never("labels !== undefined"), test: "leader-checks" },
  {
    ...{ name: "grant: max concurrent", file: grants, test: "leader-checks" },
    ...never("maxConcurrent !== undefined"),
  },
  {
    ...{ name: "grant: prefetch", file: grants, test: "leader-checks" },
    ...{ from: "profile.maxConcurrent + prefetch >", to: "profile.maxConcurrent >" },
  },
  {
    ...{ name: "grant: capacity of a heartbeat", file: "src/core/decide-agent.ts", test: "leader-checks" },
    ...{ from: "max !== undefined && wanted + row.prefetch > max", to: "false && max !== undefined" },
  },
  { name: "grant: resources", file: rules, ...never("granted !== undefined"), test: "leader-checks" },
  {
    name: "grant: project of slots",
    file: rules,
    ...never("project !== undefined && !grants"),
    test: "leader-checks",
  },
  { name: "grant: tokens of slots", file: rules, ...never("tokensMax !== undefined"), test: "leader-checks" },
  {
    ...{ name: "grant: tokens of an attempt", file: "src/core/decide-attempt.ts", test: "leader-checks" },
    ...{ from: "withinGrant(grantOf(state, agent), reported)", to: "reported" },
  },
  {
    ...{ name: "grant: projects of assignments", file: grants, test: "leader-checks" },
    ...{ from: "admits: (group) => included.has(group) || !bounded.has(group)", to: "admits: () => true" },
  },
  {
    ...{ name: "policy: agents declared", file: rules, test: "leader-checks" },
    ...{ from: 'agents === "declared" ?', to: "false ?" },
  },
  {
    ...{ name: "grant: sessions beyond it end", file: "src/core/decide-grant.ts", test: "leader-checks" },
    ...{
      from: "row.group === group && isBeyond(state, rules, row)",
      to: "false && isBeyond(state, rules, row)",
    },
  },
  { name: "project: user", file: admission, ...never("only !== undefined"), test: "leader-checks" },
  {
    name: "project: priority",
    file: admission,
    ...never("priorityRange !== undefined"),
    test: "leader-checks",
  },
  { name: "project: weight", file: admission, ...never("weightRange !== undefined"), test: "leader-checks" },
  // --- 1.2 replies
  {
    ...{ name: "reply: no inbox, requests", file: "src/requests/router.ts", test: "replies" },
    ...never("reply !== undefined && !isInbox"),
  },
  {
    ...{
      name: "reply: not the asker's, requests",
      file: "src/requests/router.ts",
      test: "replies",
    },
    ...never("reply !== undefined && !this.#owners"),
  },
  {
    ...{ name: "reply: no inbox, queries", file: queries, test: "replies" },
    ...{ from: "reply === undefined || !isInbox(reply)", to: "reply === undefined" },
  },
  { name: "reply: not the asker's, queries", file: queries, ...never("!this.#owners"), test: "replies" },
  {
    ...{ name: "reply: an agent's", file: owners, test: "replies" },
    ...{
      from: 'if (sender === "agent") return isInboxOf(owner, reply)',
      to: 'if (sender === "agent") return true',
    },
  },
  {
    ...{ name: "reply: a user's", file: owners, test: "replies" },
    ...{ from: "users.some((user) => isInboxOf(user, inbox))", to: "users.length >= 0" },
  },
  {
    ...{ name: "reply: whole names", file: owners, test: "replies" },
    ...{ from: "}.`) || inbox", to: "}`) || inbox" },
  },
  {
    ...{ name: "reply: notify of submissions", file: handlers, test: "replies" },
    ...never("notify !== undefined"),
  },
  {
    ...{ name: "reply: notify of waits", file: "src/requests/await-handler.ts", test: "replies" },
    ...never("!this.#owners"),
  },
  // --- 1.3 projects
  {
    name: "owner: settings of operators",
    file: handlers,
    ...never("theirs !== undefined"),
    test: "leader-checks",
  },
  { name: "query.journal of a project", file: queries, ...never("(whatOf(message)"), test: "replies" },
  {
    ...{ name: "query.records of a project", file: queries, test: "replies" },
    ...{ from: "projectOf(message) === NO_PROJECT ? this.#records", to: "true ? this.#records" },
  },
  {
    ...{
      name: "query.events: its project alone",
      file: "src/audit/reading/audit-reader.ts",
      test: "leader-checks",
    },
    ...{ from: "shownToAll.includes(event.type) || projectOf(event) === project", to: "true" },
  },
  {
    ...{
      name: "query.events: without payloads",
      file: "src/audit/reading/audit-reader.ts",
      test: "leader-checks",
    },
    ...{ from: "withContent ? events : events.map(withoutContents)", to: "events" },
  },
  // --- 1.4 tokens
  {
    ...{ name: "token: the HMAC", file: "src/requests/attempt-tokens.ts", test: "leader-checks" },
    ...{ from: "return isRight ?", to: "return true ?" },
  },
  {
    ...{ name: "token: the attempt's", file: "src/core/decide-attempt.ts", test: "leader-checks" },
    ...never("attempt.token !== command.token"),
  },
  // --- 1.5 bounds
  {
    ...{ name: "answers: the budget of a project", file: queries, test: "leader-checks" },
    ...never("leader !== undefined && this.#isTooMuch"),
  },
  // --- 2 the configuration
  { name: "server: TLS", file: config, from: "`tls { cert_file", to: "`# tls { cert_file", test: "attacks" },
  {
    ...{ name: "server: an account for each swarm", file: config, test: "attacks" },
    ...{ from: "return `WAGGLE_", to: 'return "WAGGLE" || `' },
  },
  {
    ...{ name: "server: permissions of nkeys", file: config, test: "attacks" },
    ...{ from: ", permissions: $", to: " } # $" },
  },
  {
    ...{ name: "server: permissions of signing keys", file: "src/auth/claims.ts", test: "attacks" },
    ...{ from: "template: { ...template, ...unlimited }", to: "template: { ...unlimited }" },
  },
  // --- 1.6 credentials
  {
    ...{ name: "credentials: transport", file: "src/transport/nats.ts", test: "expired" },
    ...{ from: "isRefusedLogin(status.error) && this.#login.refused()", to: "false" },
  },
];

const root = fileURLToPath(new URL("../..", import.meta.url));

function copied(): string {
  const folder = mkdtempSync(join(tmpdir(), "waggle-mutants-"));
  for (const part of ["src", "test", "machines", "bin", "docs", "scripts", "package.json"])
    cpSync(join(root, part), join(folder, part), { recursive: true });
  for (const file of ["vitest.config.ts", "vitest.long.config.ts", "tsconfig.json"])
    cpSync(join(root, file), join(folder, file));
  for (const part of ["node_modules", "dist"]) symlinkSync(join(root, part), join(folder, part));
  return folder;
}

/** Whether a case of the file fails. */
function isNoticed(folder: string, test: string): boolean {
  const long = test === "expired" ? ["--config", "vitest.long.config.ts"] : [];
  const args = ["vitest", "run", ...long, `test/security/${test}.test.ts`, "--bail", "1"];
  const { status } = spawnSync("npx", args, { cwd: folder, stdio: "ignore", timeout: 300_000 });
  return status !== 0;
}

const USAGE = `npm run test:security-mutants -- [WORD]

Runs all mutants, or those with the word in their name. Takes minutes. Exits 1 if no test notices a mutant.`;

const { positionals } = readFlags(USAGE, () =>
  parseArgs({ allowPositionals: true, options: { help: { type: "boolean", default: false } } }),
);
const [word = ""] = positionals;
const wanted = mutants.filter(({ name }) => name.includes(word));
const folder = copied();
try {
  const sound = new Set<string>();
  const unnoticed = wanted.filter(({ name, file, from, to, test }) => {
    if (!sound.has(test) && isNoticed(folder, test))
      throw new Error(`${test}.test.ts fails without a change`);
    sound.add(test);
    const path = join(folder, file);
    const text = readFileSync(path, "utf8");
    if (text.split(from).length !== 2) throw new Error(`${name}: ${file} must have once: ${from}`);
    writeFileSync(
      path,
      text.replace(from, () => to),
    );
    const noticed = isNoticed(folder, test);
    writeFileSync(path, text);
    console.log(`${noticed ? "noticed " : "UNNOTICED"} ${name}`);
    return !noticed;
  });
  process.exitCode = unnoticed.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
