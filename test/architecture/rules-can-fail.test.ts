// Proves for each architecture rule that the rule finds a violation and accepts a similar legal file. The last test
// fails for a rule without a case.

import { describe, expect, test } from "vitest";
import { formRules } from "./form-rules.ts";
import { importRules } from "./import-rules.ts";
import { namingRules } from "./naming-rules.ts";
import { proseRules } from "./prose-rules.ts";
import { purityRules } from "./purity-rules.ts";
import { repositoryRules } from "./repository-rules.ts";
import { explain, type Rule } from "./rule.ts";
import { sourceFile, type Tree } from "./source-tree.ts";

const rules = [
  ...importRules,
  ...purityRules,
  ...formRules,
  ...namingRules,
  ...repositoryRules,
  ...proseRules,
];

type Files = Readonly<Record<string, string>>;

interface Case {
  readonly wrong: readonly Files[];
  readonly right: Files;
}

const somePath = "src/coordinator/step.ts";
const machinePath = ["", "home", "ann", "waggle"].join("/");
const registryHost = ["registry", "example", "org"].join(".");

const alarms = (cell: string) =>
  `## Alarms in the log\n\n| it says | do |\n|---|---|\n| ${cell} | look |\n\n## Else\n\n| a | b |\n`;

const cases: Readonly<Record<string, Case>> = {
  "imports point one way": {
    wrong: [
      { "src/core/decide.ts": 'import { step } from "../coordinator/step.ts";' },
      { "src/coordinator/step.ts": 'import type { Verb } from "../cli/verb.ts";' },
      { "src/agent/session.ts": 'export const load = () => import("../coordinator/step.ts");' },
      { "src/scheduling/planner.ts": 'import type { Decision } from "../core/decision.ts";' },
      { "src/state/queues.ts": 'import { score } from "../scheduling/score.ts";' },
      { "machines/agent.ts": 'import { x } from "../src/protocol/codec.ts";' },
      { "src/transport/memory.ts": 'import {\n  a,\n  b,\n} from "../journal/memory.ts";' },
      { "src/index.ts": 'export { main } from "./cli/main.ts";' },
      { "src/ids.ts": 'import { x } from "./core/state.ts";' },
      { "src/novelty/thing.ts": "export const a = 1;" },
    ],
    right: {
      "src/cli/main.ts": 'import { step } from "../coordinator/step.ts";',
      "src/coordinator/step.ts":
        'import { decide } from "../core/decide.ts";\nimport { limits } from "../limits.ts";',
      "machines/agent.ts":
        '// import { x } from "../src/cli/x.ts";\nimport type { A } from "../src/state/state.ts";',
      "src/agent/session.ts": 'const text = `import { a } from "../cli/a.ts"`;',
      "src/index.ts": 'export { connect } from "./client/swarm.ts";',
    },
  },
  "the coordinator's folders rest on one another one way": {
    wrong: [
      { "src/coordinator/taking-lead/take-lead.ts": 'import type { Leader } from "../leader/leader.ts";' },
      { "src/coordinator/timing.ts": 'import { Compaction } from "./compacting/compaction.ts";' },
      { "src/coordinator/compacting/compaction.ts": 'import { start } from "../coordinator.ts";' },
      { "src/coordinator/novelty/thing.ts": 'import { Compaction } from "../compacting/compaction.ts";' },
    ],
    right: {
      "src/coordinator/coordinator.ts": 'import { Leader } from "./leader/leader.ts";',
      "src/coordinator/leader/leader.ts":
        'import { takeLead } from "../taking-lead/take-lead.ts";\nimport { LeaderLease } from "./leader-lease.ts";\nimport { T } from "../timing.ts";',
      "src/coordinator/timing.ts": 'import { ThrottledPoll } from "./throttled-poll.ts";',
    },
  },
  "state, scheduling and core import nothing but themselves": {
    wrong: [
      { "src/core/decide.ts": 'import { z } from "zod";' },
      { "src/core/decide.ts": 'import { hash } from "node:crypto";' },
      { "src/scheduling/planner.ts": 'import type { Clock } from "../clock.ts";' },
      { "src/scheduling/planner.ts": 'import "rxjs";' },
    ],
    right: {
      "src/core/decide.ts":
        'import { plan } from "../scheduling/planner.ts";\nimport { assert } from "../assert.ts";',
      "src/coordinator/step.ts": 'import { z } from "zod";',
    },
  },
  "@nats-io is imported only by files named nats.ts": {
    wrong: [
      { "src/transport/memory.ts": 'import type { NatsConnection } from "@nats-io/transport-node";' },
      { "src/cli/doctor.ts": 'const nats = await import("@nats-io/jetstream");' },
    ],
    right: { "src/transport/nats.ts": 'import { connect } from "@nats-io/transport-node";' },
  },
  "packages for the terminal are imported only by src/cli": {
    wrong: [{ "src/client/swarm.ts": 'import colors from "picocolors";' }],
    right: { "src/cli/colors.ts": 'import colors from "picocolors";' },
  },
  "zod is imported as a namespace": {
    wrong: [{ "src/cli/doctor.ts": 'import { z } from "zod";' }],
    right: {
      "src/cli/doctor.ts": 'import * as z from "zod";',
      "src/cli/config.ts": 'import type { z } from "zod";',
    },
  },
  "the demo's first line waits for no heavy package": {
    wrong: [
      { "src/cli/demo.ts": 'import { Subject } from "rxjs";' },
      {
        "src/cli/main.ts": 'import { run } from "./run.ts";',
        "src/cli/run.ts": 'import { upCommand } from "./up.ts";',
        "src/cli/up.ts": 'import { connect } from "@nats-io/transport-node";',
      },
    ],
    right: {
      "src/cli/main.ts": 'import { run } from "./run.ts";',
      "src/cli/run.ts": 'export const up = () => import("./up.ts");',
      "src/cli/up.ts": 'import { connect } from "@nats-io/transport-node";',
      "src/cli/demo.ts": 'import type { Observable } from "rxjs";',
    },
  },
  "no barrels": {
    wrong: [
      { "src/core/index.ts": "export const a = 1;" },
      { [somePath]: 'export { decide } from "../core/decide.ts";' },
      { [somePath]: 'export * from "../core/decide.ts";' },
      { "src/index.ts": 'export * from "./client/swarm.ts";' },
    ],
    right: { "src/index.ts": 'export { connect } from "./client/swarm.ts";', [somePath]: "export { step };" },
  },
  "no import cycles": {
    wrong: [
      { "src/core/a.ts": 'import { b } from "./b.ts";', "src/core/b.ts": 'import type { A } from "./a.ts";' },
      {
        "src/core/a.ts": 'import { b } from "./b.ts";',
        "src/core/b.ts": 'import { c } from "../scheduling/c.ts";',
        "src/scheduling/c.ts": 'import { a } from "../core/a.ts";',
      },
    ],
    right: {
      "src/core/a.ts": 'import { b } from "./b.ts";\nimport { c } from "./c.ts";',
      "src/core/b.ts": 'import { c } from "./c.ts";',
      "src/core/c.ts": "export const c = 1;",
    },
  },
  "state, scheduling and core are pure": {
    wrong: [
      "const at = Date.now();",
      "const at = new Date();",
      "const at = performance.now();",
      "const jitter = Math.random();",
      "setTimeout(() => {}, 5);",
      "export async function decide() {}",
      "const a = Promise.resolve(1);",
      `const text = \`$\{Date.now()}\`;`,
      "const debug = process.env.DEBUG;",
      "names.sort((a, b) => a.localeCompare(b));",
    ].map((line) => ({ "src/core/decide.ts": line })),
    right: {
      "src/core/decide.ts":
        '// Date.now() is an input\nconst text = "await Math.random()";\nconst dateOf = (at: Instant) => at;',
      [somePath]: "const at = Date.now();",
    },
  },
  "every file opens by saying what it is": {
    wrong: [{ [somePath]: "export const a = 1;" }, { "bin/waggle.js": "#!/usr/bin/env node\nimport a;" }],
    right: {
      [somePath]: "// The step.\nexport const a = 1;",
      "bin/waggle.js": "#!/usr/bin/env node\n// Starts.\n",
    },
  },
  "no line of a comment is longer than a window is wide": {
    wrong: [{ [somePath]: `// ${"x".repeat(118)}\n` }, { [somePath]: `/** A.\n *  ${"x".repeat(117)} */\n` }],
    right: { [somePath]: `// ${"x".repeat(117)}\nconst text = "${"x".repeat(120)}"; // any\n` },
  },
  "files that comments and documents name are there": {
    wrong: [
      { [somePath]: "// What it is. Not here: what it does (stepping.ts).\n" },
      { "docs/page.md": "See `src/coordinator/stepping.ts`." },
    ],
    right: {
      [somePath]: "// What it is (coordinator/step.ts, step.ts).\n",
      "docs/page.md": "See `src/coordinator/step.ts`.",
      "docs/adr/0001-a.md": "Then it stood in stepping.ts.",
    },
  },
  "no default exports": {
    wrong: [{ [somePath]: "export default 1;" }, { "test/support/a.ts": "export { a as default };" }],
    right: {
      "vitest.config.ts": "export default {};",
      [somePath]: '// export default\nconst a = "export default";',
    },
  },
  "no mutable state at module level": {
    wrong: [{ [somePath]: "let count = 0;" }, { "machines/agent.ts": "export let count = 0;" }],
    right: { [somePath]: "function f() {\n  let count = 0;\n}\nconst fixed = 1;" },
  },
  "nobody prints but the command line": {
    wrong: [{ [somePath]: 'console.error("x");' }, { [somePath]: 'process.stdout.write("x");' }],
    right: {
      "src/cli/main.ts": 'console.log("x");',
      "src/broker/development-main.ts": "process.stdout.write(ready);",
      [somePath]: "// console.log",
    },
  },
  "promises of Node's own modules do not float": {
    wrong: [
      { [somePath]: 'import { rm } from "node:fs/promises";\n  rm("a");' },
      { "test/a.test.ts": 'import { once } from "node:events";\nonce(child, "exit");' },
    ],
    right: {
      [somePath]:
        'import { rm } from "node:fs/promises";\nimport { once } from "node:stream";\nawait rm("a");\nvoid rm("b");\nonce(x);',
    },
  },
  "every bound stands in src/limits.ts": {
    wrong: [
      { [somePath]: "const timeoutMs = 5_000;" },
      { [somePath]: "request(subject, bytes, { timeoutMs: 250 });" },
      { [somePath]: "const depthMax: number = 64;" },
      { [somePath]: "const frameBytes = 64 * 1024;" },
      { [somePath]: "setTimeout(() => renew(now()), 1000);" },
    ],
    right: {
      [somePath]:
        "const timeoutMs = limits.appendTimeoutMs;\nlet busyMs = 0;\nsetTimeout(renew, 0);\nconst text = 5;\ntype A = { bytesMax: number };",
      "src/limits.ts": "const timeoutMs = 5_000;",
    },
  },
  "files and folders are kebab-case": {
    wrong: [{ "src/core/indexedHeap.ts": "" }, { "src/Core/a.ts": "" }, { "test/agent_thread.test.ts": "" }],
    right: {
      "src/state/indexed-heap.ts": "",
      "examples/python-agent/README.md": "",
      "test/core/apply.test.ts": "",
    },
  },
  "file names use the words of the glossary": {
    wrong: [
      { "src/agent/worker.ts": "" },
      { "src/core/util.ts": "" },
      { "src/common/a.ts": "" },
      { "test/helpers/a.ts": "" },
    ],
    right: { "src/core/worked-example.ts": "", "src/agent/thread.ts": "", "docs/jobs.md": "" },
  },
  "declared names use the words of the glossary": {
    wrong: [
      { [somePath]: "export class AgentManager {}" },
      { [somePath]: "const taskData = 1;" },
      { [somePath]: "export type NodeInfo = string;" },
      { [somePath]: "export class JournalImpl {}" },
      { [somePath]: "export async function runJobs() {}" },
      { [somePath]: "function tellOutcome() {}" },
      { [somePath]: "interface SlotParties {}" },
      { [somePath]: "function run() {\n  const ceilingMs = 1;\n}" },
      { [somePath]: "class Reader {\n  async #refillGap() {}\n}" },
      { [somePath]: "interface Lease {\n  readonly trustMs: number;\n}" },
    ],
    right: {
      [somePath]:
        'import { Worker } from "node:worker_threads";\nexport interface Message {\n  data: Uint8Array;\n}\nconst informed = 1;\nconst defaultDataFolder = 1;\nconst trustedAt = 1;',
    },
  },
  "texts use the words of the glossary": {
    wrong: [
      { [somePath]: "// A ceiling for each user." },
      { [somePath]: 'const flag = "--lane <name>";' },
      { "docs/a.md": "The embargo ends with the commit." },
    ],
    right: {
      [somePath]: "// A starvation limit.",
      "docs/glossary.md": "Not in code: ceiling, lane.",
      "test/a.ts": "// lane",
    },
  },
  "no word stands twice in the glossary": {
    wrong: [
      { "docs/glossary.md": "| **rate** | One. |\n| **turn** | Two. |\n| **rate** | Three. |" },
      { "docs/glossary.md": "| **reserve**, **settle** | One. |\n| **settle** | Two. |" },
    ],
    right: {
      "docs/glossary.md": "| **turn** of a project | One. |\n| **turn** of the coordinator | Two. |",
      "docs/other.md": "| **rate** | One. |\n| **rate** | Two. |",
    },
  },
  "links in documents lead somewhere": {
    wrong: [
      { "README.md": "[a](docs/absent.md)" },
      { "README.md": "[a](#absent)\n# Present" },
      { "docs/a.md": "[a](b.md#absent)", "docs/b.md": "# Here" },
    ],
    right: {
      "docs/a.md": "[a](b.md#it-s-here), [c](../src), [d](https://example.org), `[e](absent.md)`\n",
      "docs/b.md": "# It-s `here`!\n",
      "src/ids.ts": "",
    },
  },
  "each folder of src is on the map": {
    wrong: [
      { "README.md": "src/core/  pure\n", "src/core/step.ts": "", "src/views/status.ts": "" },
      { "docs/architecture.md": "see `src/views/`\n", "src/views/status.ts": "" },
    ],
    right: {
      "README.md": "src/core/  pure\n",
      "docs/architecture.md": "| `src/core/` | pure |\n",
      "docs/glossary.md": "",
      "src/core/step.ts": "",
      "src/ids.ts": "",
    },
  },
  "tables of promises name their tests": {
    wrong: [
      { "docs/failure-modes.md": "| killed | it goes on | at once | nothing |" },
      { "docs/failure-modes.md": "| killed | it goes on | at once | `test/absent.test.ts` |" },
      {
        "docs/failure-modes.md": "| killed | it goes on | at once | `test/chaos/kill.ts` |",
        "test/chaos/kill.ts": "",
      },
      {
        "docs/failure-modes.md": "| killed | it goes on | at once | `npm run chaos -- --part kills` |",
        "docs/results/chaos.json": '[{ "part": "stops" }]',
      },
    ],
    right: {
      "docs/failure-modes.md":
        "| fault | what | within | shown by |\n|---|---|---|---|\n| killed | it goes on | at once | `test/kill.test.ts`, `test/process/`, `npm run chaos -- --part kills` |",
      "docs/results/chaos.json": '[{ "part": "kills" }]',
      "test/kill.test.ts": "",
      "test/process/a.test.ts": "",
    },
  },
  "pages that grow fit one reading": {
    wrong: [
      { "docs/failure-modes.md": "| a | b | c | `test/a.test.ts` |\n".repeat(91) },
      { "CHANGELOG.md": "a\n".repeat(61) },
      { "docs/reliability.md": "a\n".repeat(121) },
    ],
    right: {
      "docs/failure-modes.md": `| fault | effect |\n|---|---|\n${"| a | b |\n".repeat(90)}`,
      "CHANGELOG.md": "a\n".repeat(60),
      "docs/reliability.md": "a\n".repeat(120),
      "docs/operations.md": "a\n".repeat(1_000),
    },
  },
  "no cell of a table has more than 200 characters": {
    wrong: [
      { "docs/failure-modes.md": `| a | ${"b".repeat(201)} | c |` },
      { "docs/adr/0001-a.md": `| a | ${"b".repeat(150)}\\|${"b".repeat(50)} |` },
      { "docs/protocol.md": `<!-- table a -->\n\n| a |\n\n<!-- end -->\n\n| ${"b".repeat(201)} |` },
    ],
    right: {
      "docs/failure-modes.md": `| a | ${"b".repeat(200)} | c |\n\n${"Text. ".repeat(40)}`,
      "docs/protocol.md": `<!-- table a -->\n\n| ${"b".repeat(201)} |\n\n<!-- end -->\n`,
      "docs/results.md": `| ${"b".repeat(201)} |`,
    },
  },
  "the coordinator and the journal stay readable in a day": {
    wrong: [
      { "src/coordinator/a.ts": "\n".repeat(13_000), "src/journal/b.ts": "\n".repeat(501) },
      { "src/journal/b.ts": "\n".repeat(13_000), "src/requests/c.ts": "\n".repeat(5_501) },
    ],
    right: { "src/coordinator/a.ts": "\n".repeat(13_000), "src/audit/b.ts": "\n".repeat(9_000) },
  },
  "each fault of the simulation has its row": {
    wrong: [
      {
        "src/sim/fault/fault.ts": 'export const faultKinds = {\n  "ack-lost": "it is lost",\n} as const;',
        "docs/failure-modes.md": "| an ack-lost | asked again |",
      },
    ],
    right: {
      "src/sim/fault/fault.ts":
        'export const faultKinds = {\n  "ack-lost": "it is lost",\n  crash: "it ends",\n} as const;',
      "docs/failure-modes.md": "| `ack-lost` or `crash` | asked again | at once | `test/a.test.ts` |",
      "test/a.test.ts": "",
    },
  },
  "alarms are quoted as they are logged": {
    wrong: [
      { "docs/operations.md": alarms("*the disk is full*"), "src/ids.ts": '"the disc is full";' },
      { "docs/operations.md": alarms("the disk is full"), "src/ids.ts": '"the disk is full";' },
      { "docs/operations.md": alarms("*the disk is full*"), "src/ids.ts": "// the disk is full" },
      { "docs/operations.md": alarms("*agent … left*"), "src/ids.ts": '"agent a1";\n"left";' },
    ],
    right: {
      "docs/operations.md": alarms("*the disk is full, and stays so*, *agent … left*, *… (slowly)*"),
      "src/ids.ts": '"the disk is full, " +\n  "and stays so";\n`agent ${id} has left`;\n`${what} (slowly)`;',
    },
  },
  "the lock file names no hosts": {
    wrong: [{ "package-lock.json": `{ "resolved": "https://${registryHost}/zod.tgz" }` }],
    right: { "package-lock.json": '{ "integrity": "sha512-x" }' },
  },
  "the lock file is whole": {
    wrong: [
      {
        "package-lock.json":
          '{ "packages": { "node_modules/a": { "integrity": "x", "optionalDependencies": { "b": "1" } } } }',
      },
      { "package-lock.json": '{ "packages": { "node_modules/a": { "version": "1" } } }' },
    ],
    right: {
      "package-lock.json":
        '{ "packages": { "": {}, "node_modules/a": { "integrity": "x", "optionalDependencies": { "b": "1" } }, "node_modules/b": { "integrity": "y" } } }',
    },
  },
  "nothing in the repository is about one machine": {
    wrong: [
      { "docs/a.md": `Run it in ${machinePath}/src` },
      { Dockerfile: `RUN npm --registry https://${registryHost}` },
    ],
    right: { "docs/a.md": "See /var/lib/waggle, ./work/, and src/work/a." },
  },
  "comments and pages name what they speak of": {
    wrong: [
      { [somePath]: "// Whoever held it gives it back to those that wait for it there." },
      {
        "src/a/b.ts": `// ${"It is this which those have. ".repeat(40)}`,
        "docs/a.md": "The leader appends. ".repeat(400),
      },
    ],
    right: {
      [somePath]: "// The leader appends a batch before any answer leaves.",
      "docs/a.md": "The agent reports a result with `its id` once.",
    },
  },
  "names of tests name what they speak of": {
    wrong: [
      { [somePath]: "// no test" },
      { "test/empty.test.ts": 'const it = "it";' },
      { "test/a.test.ts": 'it("gives it to those that wait for it", () => {});' },
      { "test/a.test.ts": 'describe.each(rows)("what %s is to another", () => {});' },
      {
        "test/a.test.ts":
          'it.skipIf(a(")") || b)(\n  "keeps a task",\n);\ntest.each([["a"]])(`what ${"x"} it has`, run);',
      },
    ],
    right: {
      "test/a.test.ts":
        'describe("a task", () => {\n  it("keeps the agent", () => expect(it.that(what)).toBe("it that"));\n});',
    },
  },
  "no sentence of a comment or a page has more than 30 words": {
    wrong: [
      { [somePath]: `// ${"word ".repeat(31)}` },
      { "docs/a.md": `| a | ${"word ".repeat(31)} |` },
      { "a.py": `"""${"word ".repeat(20)}\n${"word ".repeat(11)}"""` },
      { "a.py": `x = 1\n# ${"word ".repeat(31)}` },
    ],
    right: {
      [somePath]: `// ${"word ".repeat(20)}.\n// ${"Word ".repeat(20)}.`,
      "a.py": `"""${"word ".repeat(20)}.\n\n    ${"code ".repeat(31)}\n"""\nx = "${"text ".repeat(31)}"`,
      "docs/a.md": `${"word ".repeat(30)}`,
    },
  },
  "pages name no commits": {
    wrong: [
      { "docs/a.md": "Waggle 5f5140d8-dirty on Node 20." },
      { "README.md": `Measured at ${"0a".repeat(20)}.` },
    ],
    right: {
      "docs/a.md": "Waggle 0.1.0 of 2026-11-27: 1007000 decade defaced `5f5140d8`\n```\nabc1234\n```\n",
      "docs/results/budget.json": '{ "commit": "5f5140d8" }',
    },
  },
  "no notes to oneself in the code": {
    wrong: [{ [somePath]: `// ${"TO"}DO: later` }],
    right: { [somePath]: "// what is to do: nothing" },
  },
};

describe.each(Object.entries(cases))("%s", (name, { wrong, right }) => {
  test.each(wrong.map((files, index) => ({ index, files })))("finds what is wrong ($index)", ({ files }) => {
    const rule = ruleNamed(name);
    const violations = rule.check(aTree(files));
    expect(violations).not.toEqual([]);
    expect(explain(rule, violations)).toContain(`Why: ${rule.why}`);
    expect(explain(rule, violations)).toContain(`Mend: ${rule.mend}`);
  });

  test("leaves alone what is right", () => {
    expect(ruleNamed(name).check(aTree(right))).toEqual([]);
  });
});

test("every rule has a case", () => {
  expect(rules.map((rule) => rule.name).sort()).toEqual(Object.keys(cases).sort());
});

function ruleNamed(name: string): Rule {
  const rule = rules.find((candidate) => candidate.name === name);
  if (rule === undefined) throw new Error(`no rule is called ${name}`);
  return rule;
}

function aTree(files: Files): Tree {
  return { files: Object.entries(files).map(([path, text]) => sourceFile(path, text)) };
}
