// The verbs for settings, in one process with the coordinator's broker: output for people, output for programs, and
// errors.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningWaggle, Workplace } from "../support/waggle-process.ts";
import { aShell, runIn } from "./shell.ts";

let workplace: Workplace;
let up: RunningWaggle;

beforeAll(async () => {
  workplace = await Workplace.make();
  up = workplace.start("up");
  await up.says("leading");
});
afterAll(() => workplace.clear());

const waggle = async (line: string) => await runIn(aShell({ cwd: workplace.folder }), ...line.split(" "));

/** A session as a person sees it: `$` lines are typed, the others printed. */
async function transcript(...lines: string[]): Promise<string> {
  let text = "";
  for (const line of lines) {
    const { code, stdout, stderr } = await waggle(line);
    text += `$ waggle ${line}\n${stdout}${stderr}${code === 0 ? "" : `exit ${code}\n`}`;
  }
  return text;
}

it("a project: set, set again, shown, listed, and its limits taken away", async () => {
  expect(
    await transcript(
      "project list",
      "project set acme --credit-weight 2 --max-concurrent 4 --budget 100000 --budget-window 1h",
      "project set acme --credit-weight 2",
      "project set acme --budget-mode alert --queue-max 500 --max-concurrent none",
      "project list",
      "project set acme --budget none --queue-max none",
      "project show other",
    ),
  ).toBe(`$ waggle project list
no project has settings: each has credit weight 1, no budget, and a limit on its queue alone
$ waggle project set acme --credit-weight 2 --max-concurrent 4 --budget 100000 --budget-window 1h
project acme set
  credit weight   2
  max concurrent  4
  budget          100,000 tokens in 1h, wait
  queue           250,000 tasks
  results         whole
$ waggle project set acme --credit-weight 2
project acme unchanged
  credit weight   2
  max concurrent  4
  budget          100,000 tokens in 1h, wait
  queue           250,000 tasks
  results         whole
$ waggle project set acme --budget-mode alert --queue-max 500 --max-concurrent none
project acme set
  credit weight   2
  max concurrent  no limit
  budget          100,000 tokens in 1h, alert
  queue           500 tasks
  results         whole
$ waggle project list
project  credit weight  max concurrent  budget                           queue  results  state
acme                 2        no limit  100,000 tokens in 1h, alert  500 tasks  whole    open
$ waggle project set acme --budget none --queue-max none
project acme set
  credit weight   2
  max concurrent  no limit
  budget          none
  queue           250,000 tasks
  results         whole
$ waggle project show other
error WAGGLE_UNKNOWN_PROJECT: there is no project other, with neither tasks nor settings; a project exists from its first task on
exit 5
`);
});

it("α of a resource: its own, refused, adjusted automatically, and the policy's again", async () => {
  expect(
    await transcript(
      "resource set lat --slots 1 --optimize-for latency",
      "resource set lat --max-waiters 7",
      "resource set lat --alpha 0.9",
      "resource set lat --auto-tune",
      "resource set lat --alpha 0.4 --auto-tune",
      "resource set lat --alpha 0.6",
      "resource set lat --alpha 0.1 --optimize-for latency",
      "resource set lat --alpha fast",
      "resource set lat --optimize-for speed",
      "resource set lat --alpha policy --auto-tune",
      "policy set --auto-tune --json",
      "resource show lat",
      "policy set --no-auto-tune --json",
      "resource set lat --alpha policy",
      "resource show lat",
      "resource show lat --json",
      "resource remove lat",
    ).then((text) => text.replaceAll(/^\{"changed":true.*\n/gm, "")),
  ).toBe(`$ waggle resource set lat --slots 1 --optimize-for latency
resource lat set
  slots        1
  max waiters  100
  α            0 (own)
$ waggle resource set lat --max-waiters 7
resource lat set
  slots        1
  max waiters  7
  α            0 (own)
$ waggle resource set lat --alpha 0.9
resource lat set
  slots        1
  max waiters  7
  α            0.9 (own)
$ waggle resource set lat --auto-tune
error WAGGLE_INVALID_VALUE: automatic tuning keeps α within 0 to 0.5; α cannot start at 0.9
exit 2
$ waggle resource set lat --alpha 0.4 --auto-tune
resource lat set
  slots        1
  max waiters  7
  α            0.4, adjusted automatically (own)
$ waggle resource set lat --alpha 0.6
error WAGGLE_INVALID_VALUE: --alpha: automatic tuning keeps α within 0 to 0.5; α cannot start at 0.6
exit 2
$ waggle resource set lat --alpha 0.1 --optimize-for latency
error WAGGLE_USAGE: option '--optimize-for <preset>' cannot be used with option '--alpha <n>'; see waggle resource set --help
exit 2
$ waggle resource set lat --alpha fast
error WAGGLE_USAGE: --alpha: must be policy, or a number from 0 to 1, not "fast" (see waggle resource set --help)
exit 2
$ waggle resource set lat --optimize-for speed
error WAGGLE_USAGE: --optimize-for: must be latency, balanced or throughput, not "speed" (see waggle resource set --help)
exit 2
$ waggle resource set lat --alpha policy --auto-tune
error WAGGLE_INVALID_VALUE: --auto-tune: not allowed where alpha returns to the policy's, which sets both
exit 2
$ waggle policy set --auto-tune --json
beware: resources with an α of their own keep it (lat): resource set --alpha policy gives them the policy's
$ waggle resource show lat
resource lat
  slots        1
  max waiters  7
  α            0.4, adjusted automatically (own)

no slot is held, and no request waits
$ waggle policy set --no-auto-tune --json
beware: resources with an α of their own keep it (lat): resource set --alpha policy gives them the policy's
$ waggle resource set lat --alpha policy
resource lat set
  slots        1
  max waiters  7
  α            the policy's
$ waggle resource show lat
resource lat
  slots        1
  max waiters  7
  α            0.25 (policy)

no slot is held, and no request waits
$ waggle resource show lat --json
{"resource":"lat","alpha":{"value":0.25,"autoTune":false,"from":"policy"},"settings":{"slots":1,"maxWaiters":7},"inUse":0,"waiting":0,"holders":[],"waiters":[]}
$ waggle resource remove lat
resource lat removed
`);
});

it("a resource on hold, whether its time lasts or is over", async () => {
  await waggle("resource set o9 --slots 2");
  await waggle("hold resource o9 --for 1h");
  const held = await waggle("resource show o9");
  expect(held.stdout).toMatch(
    /\n\non hold until \d{4}-\S+: set by an operator\nno slot is granted until then; `waggle unhold resource o9` ends the hold now\n/,
  );
  const { stdout } = await waggle("resource show o9 --json");
  expect(JSON.parse(stdout).onHold).toMatchObject({ phase: "held", by: "operator" });
  await waggle("hold resource o9 --for 100ms");
  const show = async () => (await waggle("resource show o9")).stdout;
  await expect.poll(show).toContain("the hold is over, and the next grant is the probe");
  await waggle("unhold resource o9");
  expect(await show()).not.toContain("hold is");
  await waggle("resource remove o9");
});

it("kinds, resources and rates", async () => {
  expect(
    await transcript(
      "kind set opus --importance 2 --cheaper haiku",
      "kind set opus --cheaper-type flash",
      "kind set haiku --cheaper opus",
      "kind list",
      "kind set opus --cheaper none --cheaper-type none",
      "resource set gpt-4o --max-waiters 5",
      "resource set gpt-4o --slots 8",
      "resource list",
      "resource show gpt-4",
      "rate set claude --window per_minute --tokens 10000",
      "rate set claude --window per_minute --sliding",
      "rate set claude --window per_day --tokens 500000",
      "rate list",
      "rate show claude",
      "rate remove claude --window per_day",
      "rate remove claude",
      "rate remove claude",
      "rate show claude",
      "resource remove gpt-4o",
      "resource remove gpt-4o",
    ),
  ).toBe(`$ waggle kind set opus --importance 2 --cheaper haiku
kind opus set
  importance    2
  cheaper       haiku
  cheaper type  none
$ waggle kind set opus --cheaper-type flash
kind opus set
  importance    2
  cheaper       haiku
  cheaper type  flash
beware: no agent of type flash that serves haiku is online: under a used-up budget in mode downgrade, tasks of opus wait for such an agent
$ waggle kind set haiku --cheaper opus
error WAGGLE_INVALID_VALUE: --cheaper: a kind must not lead back to itself: haiku → opus → haiku
exit 2
$ waggle kind list
kind  importance  cheaper  cheaper type
opus           2  haiku    flash
$ waggle kind set opus --cheaper none --cheaper-type none
kind opus set
  importance    2
  cheaper       none
  cheaper type  none
$ waggle resource set gpt-4o --max-waiters 5
error WAGGLE_INVALID_VALUE: --slots: the number of slots is required, because nothing was set before
exit 2
$ waggle resource set gpt-4o --slots 8
resource gpt-4o set
  slots        8
  max waiters  100
  α            the policy's
$ waggle resource list
resource  slots  max waiters  α
gpt-4o        8          100  0.25 (policy)
$ waggle resource show gpt-4
error WAGGLE_UNKNOWN_RESOURCE: there is no resource gpt-4; did you mean gpt-4o? \`waggle resource set gpt-4 --slots N\` creates it
exit 5
$ waggle rate set claude --window per_minute --tokens 10000
rate of type claude set
  window  per_minute
  tokens  10,000
$ waggle rate set claude --window per_minute --sliding
rate of type claude set
  window  per_minute, sliding
  tokens  10,000
$ waggle rate set claude --window per_day --tokens 500000
rate of type claude set
  window  per_day
  tokens  500,000
$ waggle rate list
type    window                tokens
claude  per_minute, sliding   10,000
claude  per_day              500,000
$ waggle rate show claude
rate of type claude
  window  per_minute, sliding
  tokens  10,000
rate of type claude
  window  per_day
  tokens  500,000
$ waggle rate remove claude --window per_day
rate of type claude per_day removed
$ waggle rate remove claude
rate of type claude removed
$ waggle rate remove claude
rate of type claude was not set
$ waggle rate show claude
no rate is set for agents of type claude: no limit
exit 5
$ waggle resource remove gpt-4o
resource gpt-4o removed
$ waggle resource remove gpt-4o
resource gpt-4o was not set
`);
});

it("the policy: a rule set with one rule of its own, limits and their end", async () => {
  const { stdout } = await waggle(
    "policy set --rules lucio --user-turn fifo --lambda 0.5 --top-n 200 --auto-tune",
  );
  expect(stdout).toMatch(/^policy set\n {2}rules +lucio\n {2}project turn +none\n {2}user turn +fifo\n/);
  expect(stdout).toMatch(/λ +0\.5\n.*\n {2}α +0\.25, adjusted automatically\n/);
  expect(stdout).toMatch(/top N +200\n/);
  expect(await transcript("policy set --alpha 0.75")).toContain(
    "error WAGGLE_INVALID_VALUE: --alpha: automatic tuning keeps α",
  );
  const { stdout: json } = await waggle("policy set --rules waggle --no-auto-tune --top-n none --json");
  expect(JSON.parse(json)).toMatchObject({
    changed: true,
    idx: expect.any(Number),
    settings: { rules: "waggle", userTurn: "clock", autoTune: false },
  });
  expect(JSON.parse(json).settings).not.toHaveProperty("topN");
  const shown = JSON.parse((await waggle("policy show --json")).stdout);
  expect(shown).toEqual({ paused: false, ...JSON.parse(json).settings });
});

it("pause and resume, of a project and of the swarm, also show in status", async () => {
  expect(
    await transcript("pause acme", "pause", "pause", "resume --project acme", "pause acme", "resume"),
  ).toBe(
    `$ waggle pause acme
project acme is paused: none of its tasks is assigned until \`waggle resume acme\`; running attempts continue
$ waggle pause
the whole swarm is paused: nothing is assigned until \`waggle resume\`; running attempts continue
$ waggle pause
the whole swarm was paused before: nothing is assigned until \`waggle resume\`; running attempts continue
$ waggle resume --project acme
project acme resumed
the whole swarm is still paused: \`waggle resume\` without a name resumes it
$ waggle pause acme
project acme is paused: none of its tasks is assigned until \`waggle resume acme\`; running attempts continue
$ waggle resume
the swarm resumed
still paused by name: acme
`,
  );
  expect((await waggle("status")).stdout).toContain("paused projects: acme");
  expect((await waggle("project list")).stdout).toMatch(/^acme .* paused$/m);
  await waggle("pause");
  expect((await waggle("status")).stdout).toContain("paused: nothing is assigned until `waggle resume`");
  expect((await waggle("policy show")).stdout).toContain("paused: nothing is assigned");
  await waggle("resume");
  expect(await transcript("resume acme", "resume acme --json")).toMatch(
    /project acme resumed\n\$ waggle resume acme --json\n\{"project":"acme","paused":false,"changed":false,/,
  );
});

it("a refusal names the flag that was typed, or that is missing", async () => {
  expect(
    await transcript(
      "project set new --budget 1000",
      "project set new --budget-mode alert",
      "rate set gemini --window per_day",
      "policy set --project-turn none",
    ),
  ).toMatch(
    /--budget-window: the length of a window is required, .*\n(.*\n)+.*--budget: the number of tokens per window is required.*\n(.*\n)+.*--tokens is required.*\n(.*\n)+.*--project-turn: where projects/,
  );
  const { stderr } = await waggle("project set new --budget 1000 --json");
  expect(JSON.parse(stderr).error).toMatchObject({
    field: "budget.windowMs",
    message: expect.stringMatching(/^--budget-window: /),
  });
});

describe("where projects are declared", () => {
  it("an unknown one is refused, shown as such, and declared by setting nothing", async () => {
    await waggle("policy set --projects declared");
    const refused = "error WAGGLE_UNKNOWN_PROJECT: project typo does not exist";
    expect(await transcript("submit --kind k --project typo")).toMatch(new RegExp(`${refused}.*\nexit 5\n$`));
    expect(await transcript("pause typo")).toContain(refused);
    expect(await waggle("project show typo")).toMatchObject({
      code: 5,
      stderr: expect.stringContaining("there is no project typo, with neither tasks nor settings;"),
    });
    await waggle("project set typo");
    expect(await waggle("submit --kind k --project typo --id t1")).toMatchObject({ code: 0, stdout: "t1\n" });
    await waggle("project set typo --budget 50 --budget-window 15m");
    expect(await transcript("submit --kind k --project typo --tokens 51")).toMatch(
      /error WAGGLE_OVER_BUDGET: --tokens: .*51.*50.*\nexit 5\n$/,
    );
    expect(
      await transcript("project remove typo", "cancel t1 --project typo", "project remove typo"),
    ).toBe(`$ waggle project remove typo
error WAGGLE_CONFLICT: project typo has 1 task that has not ended, and stays: wait until all have ended, or cancel them, and remove it then
exit 5
$ waggle cancel t1 --project typo
t1 cancelled
$ waggle project remove typo
project typo removed
`);
    const { stdout, stderr } = await waggle("project show typo");
    expect(`${stdout}${stderr}`).toMatch(/not declared: its tasks are refused|does not exist/);
    await waggle("policy set --projects open");
  });
});

it("every change is journaled, and printed as one line", async () => {
  const { stdout } = await waggle("events --from start --type ProjectConfigured");
  expect(stdout).toMatch(/project acme set: creditWeight 2, maxConcurrent 4, budget tokens 100000/);
});

it("a hold: placed, changed, shown in status and health, and ended", async () => {
  const at = "2100-01-01T00:00:00Z";
  expect(await transcript("unhold type claude", "hold agent nobody --for 10m", "hold type claude")).toBe(
    `$ waggle unhold type claude
no hold was on type claude; nothing changed
$ waggle hold agent nobody --for 10m
error WAGGLE_UNKNOWN_AGENT: there is no agent nobody
exit 5
$ waggle hold type claude
error WAGGLE_USAGE: a hold needs --for DURATION or --until TIME, one of the two; see waggle hold --help
exit 2
`,
  );
  expect((await waggle("hold type claude --until 14:30")).stderr).toContain(
    "no agent of type claude joined so far",
  );
  const placed = JSON.parse((await waggle("hold type claude --for 10m --json")).stdout);
  expect(placed).toMatchObject({ on: "type", name: "claude", changed: true });
  expect((await waggle("status")).stdout).toMatch(
    /all claude agents on hold until (?:\d{4}-\d\d-\d\d )?[\d:.]+ \(set by an operator\)/,
  );
  expect((await waggle("health")).stdout).toMatch(
    /all claude agents are on hold for 1\d min more|on hold for/,
  );
  expect((await waggle(`hold type claude --until ${at}`)).stderr).toContain(
    "until: a hold lasts at most 7 days",
  );
  expect((await waggle("unhold type claude")).stdout).toBe("all claude agents no longer on hold\n");
});
