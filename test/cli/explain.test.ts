// `waggle explain` as a person sees it, with a coordinator in its own process: three obstacles, three answers, and
// the reason of an assignment. Times and learnt values vary: they are written as ….

import { afterAll, beforeAll, expect, it } from "vitest";
import { type RunningWaggle, Workplace } from "../support/waggle-process.ts";
import { aShell, runIn } from "./shell.ts";

let workplace: Workplace;
let up: RunningWaggle;
const timeZone = process.env.TZ;

/** A zone in which it is noon: a time after midnight is printed with its date. */
function noonZone(): string {
  const hoursPastNoon = new Date().getUTCHours() - 12;
  return `Etc/GMT${hoursPastNoon < 0 ? "" : "+"}${hoursPastNoon}`; // GMT+3 is three hours behind UTC
}

beforeAll(async () => {
  process.env.TZ = noonZone();
  workplace = await Workplace.make();
  up = workplace.start("up");
  await up.says("leading");
  const agent = (id: string, command: string, kind: string) =>
    workplace.start("agent", "--id", id, "--exec", command, "--kind", kind).says("joined");
  await Promise.all([agent("slow", "sleep 10", "translate"), agent("quick", "cat", "review")]);
});
afterAll(async () => {
  if (timeZone === undefined) delete process.env.TZ;
  else process.env.TZ = timeZone;
  await workplace.clear();
});

const waggle = async (line: string) =>
  await runIn(aShell({ cwd: workplace.folder, columns: 80, env: { NO_COLOR: "1" } }), ...line.split(" "));

/** A session at a terminal of 80 columns. */
async function transcript(...lines: string[]): Promise<string> {
  let text = "";
  for (const line of lines) {
    const { code, stdout, stderr } = await waggle(line);
    text += `$ waggle ${line}\n${stdout}${stderr}${code === 0 ? "" : `exit ${code}\n`}`;
  }
  return text
    .replace(/\d+(\.\d+)? (ms|s|min)\b/g, "…")
    .replace(/\d\d:\d\d:\d\d\.\d{3}/g, "…")
    .replace(/\bbatch \d+( to \d+)?/g, "batch …") // two joins may share a batch
    .replace(/(quick +yes +1 of 1 +)0\.9\d\d +9\d %/g, "$1… …");
}

it("three things keep a task, and each is said", async () => {
  await waggle("project set acme --budget 1000 --budget-window 1h");
  await waggle("submit --kind review --project acme --user ann --id spent --tokens 800 --text x --wait");
  await waggle("submit --kind transalte --user ann --id mistyped --text x");
  await waggle("submit --kind review --project acme --user ann --id dear --tokens 300 --text x");
  await waggle("submit --kind translate --user ann --id runs --text x");
  await waggle("submit --kind translate --user ann --id waits --text x");
  expect(
    await transcript("explain mistyped", "explain waits", "explain dear --full"),
  ).toBe(`$ waggle explain mistyped
mistyped  queued for …
transalte for default/ann, no attempt yet, as of …

why         No agent serves transalte: start an agent with --kind transalte —
            did you mean translate?

turn of          place    waited  starvation limit  basis  clock  virtual time
project default  1 of 1  0 ticks                20  rule     1.0           0.0
user ann         1 of 1  0 turns                20  rule     1.0           0.0
task mistyped    1 of 1  0 turns                20

2 agents that do not serve transalte (--full lists them)
$ waggle explain waits
waits  queued for …
translate for default/ann, no attempt yet, as of …

why         Every agent of its kind is full: 1 agent, capacity 1 of 1 in use;
            the next free agent gets it; start another agent of its kind, or
            restart an agent with a higher --max-concurrent

turn of          place    waited  starvation limit  basis  clock  virtual time
project default  1 of 1  0 ticks                20  rule     1.0           0.0
user ann         1 of 1  0 turns                20  rule     1.0           0.0
task waits       1 of 1  0 turns                20

  agent  eligible    free  score  success  load  backlog  speed
  slow   full      0 of 1  0.450     90 %  1.00
1 agent that does not serve translate (--full lists them)
$ waggle explain dear --full
dear  queued for …
review for acme/ann, no attempt yet, as of …

why         The budget of project acme has too little left: 800 spent of
            1,000 tokens in 1 h; this task needs about 300; room again from
            …, or \`waggle project set acme --budget N\` raises it

turn of       place    waited  starvation limit  basis  clock  virtual time
project acme  1 of 1  0 ticks                20  rule     1.0           0.0
user ann      1 of 1  0 turns                20  rule     1.0           0.0
task dear     1 of 1  0 turns                20

  agent  eligible      free  score  success  load  backlog  speed
  quick  yes         1 of 1  … …  0.00
  slow   wrong-kind  0 of 1
`);
});

it("an assignment is shown from its receipt, and in full from a replay of the journal", async () => {
  expect(
    await transcript(
      "explain spent",
      "explain spent --attempt 1",
      "explain spent --attempt 2",
      "explain nope",
    ),
  ).toBe(`$ waggle explain spent
spent  completed at quick
review for acme/ann, 1 attempt, as of …

attempt 1 at quick, …: completed after …, 800 tokens reserved,
    none reported, 800 charged
  only eligible agent (1 of 2; 1 wrong-kind); its project's turn by guarantee;
  waited …; 0 others queued
  candidate  score  success  load  backlog  speed
→ quick      0.900     90 %  0.00

waggle explain spent --attempt 1 shows every agent at that moment
$ waggle explain spent --attempt 1
spent attempt 1 went to quick as review (batch …, …)

  agent  eligible      free  score  success  load  backlog  speed
→ quick  yes         1 of 1  … …  0.00
  slow   wrong-kind  1 of 1

the receipt says the same; replayed from batch …
$ waggle explain spent --attempt 2
error WAGGLE_INVALID_VALUE: --attempt: task spent has had 1 attempt, but no attempt 2
exit 2
$ waggle explain nope
error WAGGLE_UNKNOWN_TASK: task nope is not known here: it was never accepted, or ended too long ago
exit 5
`);
});

it("programs get the same as records", async () => {
  const { stdout } = await waggle("explain mistyped --json");
  expect(JSON.parse(stdout)).toMatchObject({
    taskId: "mistyped",
    state: "queued",
    waiting: { obstacles: [{ reason: "no-agent-serves-kind", nearMisses: ["translate"] }] },
    attempts: [],
  });
  const replayed = JSON.parse((await waggle("explain spent --full --json")).stdout);
  expect(replayed).toMatchObject({ task: "spent", attempt: 1, agent: "quick", agrees: true });
  expect(replayed.agents).toHaveLength(2);
});

it("help has examples", async () => {
  const { stdout } = await waggle("explain --help");
  expect(stdout).toContain("$ waggle explain t1 --attempt 1");
});
