// Agents in `waggle status`, and a task's history and result. Not here: requests (swarm.test.ts).

import { describe, expect, it } from "vitest";
import { endsText } from "../../src/cli/agent.ts";
import { renderExplanation } from "../../src/cli/explain-view.ts";
import { notTransferredText, transferText } from "../../src/cli/leader.ts";
import { leftBehind, leftBehindLines } from "../../src/cli/left-behind.ts";
import { Output } from "../../src/cli/output.ts";
import { renderStatus } from "../../src/cli/status-view.ts";
import { renderStory } from "../../src/cli/task-view.ts";
import type { TaskExplanation, TaskStory } from "../../src/client/task-stories.ts";
import { limits } from "../../src/limits.ts";
import type { TaskWait } from "../../src/protocol/explain-schemas.ts";
import type { StatusResponse } from "../../src/protocol/schemas.ts";
import { aShell } from "./shell.ts";

const { colors, asStarted } = new Output(aShell(), { json: false });
const view = { colors, asStarted, columns: undefined };

const anAgent = (id: string, status = "online", kinds: string[] = ["count"]) =>
  ({
    id,
    status,
    draining: false,
    unresponsive: false,
    inFlight: 0,
    maxConcurrent: 1,
    prefetch: 0,
    completed: 0,
    labels: {},
    kinds: kinds.map((kind) => ({ kind, completed: 0, attempts: 0, successRate: 1, latencyMs: 0 })),
  }) as unknown as StatusResponse["agents"][number];

const noMetrics = {
  totalAgents: 0,
  idleAgents: 0,
  busyAgents: 0,
  offlineAgents: 0,
  totalInFlight: 0,
  avgSuccessRate: 0,
  avgLoad: 0,
};

const aStatus = (agents: StatusResponse["agents"]) =>
  ({
    swarm: "s",
    leader: "l",
    term: 1,
    idx: 1,
    at: 0,
    tasks: {},
    metrics: noMetrics,
    journal: { durability: "file", sentence: "", bytes: 0 },
    agents,
    queues: [],
    projects: [],
    resources: [],
  }) as unknown as StatusResponse;

const aStory = (status: object, events: object[] = [], waits: object[] = []) =>
  ({
    status: {
      state: "queued",
      kind: "coutn",
      project: "p",
      user: "u",
      attempts: 0,
      submittedIdx: 1,
      ...status,
    },
    attempts: [],
    waits,
    events: events.map((event) => ({ idx: 1, term: 1, at: 0, event })),
  }) as unknown as TaskStory;

const completed = (result: string) =>
  aStory({ state: "completed" }, [
    { type: "TaskCompleted", task: "t", attempt: 1, agent: "a", latencyMs: 1, result },
  ]);
const explanationText = (part: object, firstIdx = 1) => {
  const line = { task: "t", kind: "k", project: "p", user: "u", at: 9_000, submittedIdx: 1 };
  const explanation = {
    ...line,
    attemptCount: 0,
    attempts: [],
    waits: [],
    ...part,
  } as unknown as TaskExplanation;
  return renderExplanation({ explanation, showsAll: false, firstIdx }, view);
};
const linesOf = (story: TaskStory, wait?: TaskWait, firstIdx = 1) =>
  renderStory("t", { story, wait, logs: [], firstIdx }, view);

describe("status", () => {
  const agents = [anAgent("a-10"), anAgent("a-2"), anAgent("gone", "offline")];

  it("shows foreign records for a day", () => {
    const status = aStatus(agents);
    const shown = (agoMs: number) => {
      const journal = { ...status.journal, foreignRecords: { count: 1_004, lastAt: 0 } };
      return renderStatus({ ...status, at: agoMs, journal } as StatusResponse, { ...view, showsAll: false });
    };
    expect(shown(limits.foreignRecordShownMs)).toMatch(
      /1,004 foreign records in the journal, the last at .*`waggle doctor`/,
    );
    expect(shown(limits.foreignRecordShownMs + 1)).not.toContain("foreign");
  });

  it("says why the next segment of the journal could not be made", () => {
    const status = aStatus(agents);
    const journal = { ...status.journal, baseFailure: "the base of segment 9 cannot be read" };
    const text = renderStatus({ ...status, journal }, { ...view, showsAll: false });
    expect(text).toContain("base: the base of segment 9 cannot be read");
  });

  it.each([
    [{ bytes: 80, bytesMax: 100 }, undefined],
    [
      { bytes: 122_500_000, bytesMax: 134_217_728 },
      "tasks are refused: the journal is 91 % full: run `waggle doctor`",
    ],
    [{ bytes: 262_000, bytesMax: 300_000 }, "tasks are refused: the journal is 87 % full"],
    [
      { bytes: 134_000_000, bytesMax: 134_217_728 },
      "the journal is full: tasks are refused, and requests that need room are not answered",
    ],
    [{ bytes: 134_000_000 }, undefined],
  ])("says whether tasks are refused for want of room: %j", (usage, said) => {
    const status = aStatus([]);
    const text = renderStatus(
      { ...status, journal: { ...status.journal, ...usage } },
      { ...view, showsAll: false },
    );
    if (said === undefined) expect(text).not.toMatch(/refused|full/);
    else expect(text).toContain(said);
  });

  it("shows no base if a standby answers", () => {
    const status = aStatus([]);
    const cut = { ...status, journal: { ...status.journal, auditFirstIdx: 1_145 } };
    const shown = (answer: StatusResponse) => renderStatus(answer, { ...view, showsAll: false });
    expect(shown(cut)).toContain("kept from batch 1,145; no base yet");
    expect(shown({ ...cut, stale: true })).toMatch(/kept from batch 1,145$/m);
  });

  it("orders agents as people count, and counts those offline", () => {
    const text = renderStatus(aStatus(agents), { ...view, showsAll: false });
    expect(text).toMatch(/^a-2 .*\na-10 .*\n1 offline \(--all lists them\)$/m);
    expect(text).not.toContain("gone");
  });

  it("names ids used by two processes, and the remedy", () => {
    const twice = { ...anAgent("a-3"), fencedAt: 1, outlivedMs: 3_000 };
    const text = renderStatus(aStatus([...agents, twice]), { ...view, showsAll: false });
    expect(text).toMatch(/^a-3 +online, started twice/m);
    expect(text).toContain("two processes use the id a-3: the earlier was fenced and was last heard 3 s ago");
    expect(text).not.toContain("started as a-2");
  });

  it("shows labels where an agent has some", () => {
    expect(renderStatus(aStatus(agents), { ...view, showsAll: false })).not.toContain("labels");
    const labelled = { ...anAgent("a-3"), labels: { gpu: "a100", region: "eu" } };
    const text = renderStatus(aStatus([...agents, labelled]), { ...view, showsAll: false });
    expect(text).toMatch(/kinds \(success, typical latency\) +labels\n/);
    expect(text).toMatch(/^a-3 .* gpu=a100 region=eu$/m);
  });

  it("does not count offline processes that only acquired slots", () => {
    const gone = { ...anAgent("slots", "offline"), kinds: [] };
    const text = renderStatus(aStatus([...agents, gone]), { ...view, showsAll: false });
    expect(text).toContain("1 offline (--all");
    expect(renderStatus(aStatus([gone]), { ...view, showsAll: false })).toMatch(/^agents {2}none$/m);
    expect(renderStatus(aStatus([gone]), { ...view, showsAll: true })).toMatch(/^slots +offline/m);
  });

  it("lists them when asked to", () => {
    const text = renderStatus(aStatus(agents), { ...view, showsAll: true });
    expect(text).toMatch(/^gone +offline/m);
    expect(text).not.toContain("--all");
  });
});

describe("standbys in status", () => {
  it.each([
    [["c2", "c3"], /^leader +l, term 1\nstandbys +c2, c3\njournal/m],
    [[], /^leader +l, term 1\nstandbys +none\njournal/m],
    [undefined, /^leader +l, term 1\njournal/m],
  ])("%j", (standbys, shown) => {
    const status = { ...aStatus([]), ...(standbys === undefined ? {} : { standbys }) };
    expect(renderStatus(status, { ...view, showsAll: false })).toMatch(shown);
  });
});

describe("processes that remain after down", () => {
  const lines = (standbys: readonly string[]) =>
    leftBehindLines(
      leftBehind({ ...aStatus([anAgent("a1"), anAgent("a2", "offline")]), standbys: [...standbys] }),
    );

  it("is every coordinator, and every present agent", () => {
    expect(lines([])[0]).toMatch(/^the coordinator l still runs and waits for a broker: /);
    expect(lines(["c2", "c3"])).toEqual([
      "the coordinators l, c2, c3 still run and wait for a broker: end each with Ctrl-C in its terminal",
      "1 agent still runs: a1; end it with Ctrl-C, too",
    ]);
  });
});

describe("an agent that has left", () => {
  const none = { running: 0, waiting: 0, completed: 0, failed: 0, infrastructure: 0, invalid: 0, aborted: 0 };

  it("shows the end of all attempts, for every kind of end", () => {
    expect(endsText({ ...none, completed: 1 })).toBe("1 attempt completed");
    expect(endsText({ ...none, completed: 2_000, invalid: 2, infrastructure: 3, aborted: 1_000 })).toBe(
      "2,000 attempts completed, 1,005 did not (2 of invalid input, 3 refused by infrastructure, 1,000 aborted)",
    );
    expect(endsText({ ...none, failed: 4 })).toBe("0 attempts completed, 4 did not (4 failed)");
  });
});

describe("a transfer of the lead", () => {
  const transferred = { leader: "c1", from: "c1", term: 2, tookMs: 5 };

  it("says who leads", () => {
    expect(transferText({ ...transferred, leader: "c2" })).toBe(
      "c2 leads in place of c1 (term 2, after 5 ms)",
    );
    expect(transferText({ ...transferred, to: "c1" })).toBe("c1 leads already");
  });

  it("without a new leader names the standby that did not answer", () => {
    expect(notTransferredText({ leader: "c1", to: undefined })).toContain(
      "no standby took over. The chosen standby did not answer: see its log; `waggle status`",
    );
    expect(notTransferredText({ leader: "c1", to: "c2" })).toContain(
      "no standby took over. c2 did not answer: see its log",
    );
  });
});

describe("the swarm in status", () => {
  const render = (more: object) => renderStatus({ ...aStatus([]), ...more }, { ...view, showsAll: false });

  it("is left out where an older coordinator says nothing of it", () => {
    const { metrics: _, ...older } = aStatus([]);
    expect(renderStatus(older, { ...view, showsAll: false })).not.toMatch(/undefined|VAPORA/);
  });

  it("shows its metrics, and no mean without agents", () => {
    expect(render({})).toMatch(/^ +0 +0 +0 +0 +0 +– +–$/m);
    const metrics = {
      totalAgents: 4,
      idleAgents: 1,
      busyAgents: 3,
      offlineAgents: 1,
      totalInFlight: 1_200,
      avgSuccessRate: 0.925,
      avgLoad: 1.5,
    };
    expect(render({ metrics })).toMatch(/^ +4 +1 +3 +1 +1,200 +93 % +150 %$/m);
  });

  it("names bottlenecks and alerts, where there are any", () => {
    const nothing = { windowMs: 600_000, bottlenecks: [], concentration: [], soleAgents: [] };
    expect(render({ observed: nothing })).toBe(render({}));
    const text = render({
      observed: {
        ...nothing,
        bottlenecks: [
          { agent: "a1", share: 0.875, observedMs: 600_000 },
          { agent: "a2", share: 0.1, observedMs: 5 },
        ],
        concentration: [
          { kind: "count", agent: "a3", share: 0.712, threshold: 0.4, assignments: 340, since: 0 },
        ],
        soleAgents: [
          { kind: "review", agent: "a4" },
          { kind: "index", agent: "a5" },
        ],
      },
    });
    expect(text).toMatch(/^full while tasks waited, of the last 10 min: a1 88 %, a2 10 %$/m);
    expect(text).toMatch(/^a3 got 71 % of the last 340 count tasks, above 40 %$/m);
    expect(text).toMatch(/^served by a single agent: review \(a4\), index \(a5\)$/m);
  });
});

describe("budgets and rates in status", () => {
  const budget = { spent: 900, reserved: 200, tokens: 1_000, windowMs: 3_600_000, mode: "wait" as const };
  const rate = {
    type: "claude",
    window: "per_minute" as const,
    sliding: true,
    tokensMax: 500,
    used: 20,
    reserved: 60,
  };

  it("are not shown where none is set", () => {
    const text = renderStatus(aStatus([]), { ...view, showsAll: false });
    expect(text).not.toMatch(/budgets|rates/);
  });

  it("show what is spent, reserved and left, and when a rate opens again", () => {
    const status = {
      ...aStatus([]),
      budget: { ...budget, reserved: 100, mode: "alert" as const },
      projects: [{ project: "p", tasks: {}, budget, users: [] }],
      rates: [
        rate,
        { ...rate, type: "codex", sliding: false, used: 500, reserved: undefined, opensAt: 30_000 },
      ],
    };
    const text = renderStatus(status, { ...view, showsAll: false });
    expect(text).toMatch(/^the swarm +900 +100 +1,000 tokens +1 h +alert: tasks run, event journaled$/m);
    expect(text).toMatch(/^p +900 +200 +1,000 tokens +1 h +wait: tasks wait \(exceeded\)$/m);
    expect(text).toMatch(/^claude +20 +60 +500 tokens +per minute +yes$/m);
    expect(text).toMatch(/^codex +500 +– +500 tokens +per minute, restarting +in 30 s$/m);
  });
});

it("a user without assignments has no mean wait, but a longest wait", () => {
  const user = { user: "ann", tasks: { queued: 1 }, waitMsMean: 0, waitMsMax: 31_000 };
  const rowOf = (started?: number) => {
    const users = [{ ...user, ...(started === undefined ? {} : { started }) }];
    return renderStatus(
      { ...aStatus([]), projects: [{ project: "p", tasks: {}, users }] },
      { ...view, showsAll: false },
    );
  };
  expect(rowOf(0)).toMatch(/^p +ann +1 queued +– +31 s$/m);
  expect(rowOf(1)).toMatch(/^p +ann +1 queued +0 ms +31 s$/m);
  expect(rowOf()).toMatch(/^p +ann +1 queued +0 ms +31 s$/m);
});

it("status says what did not fit the answer", () => {
  const omitted = { agents: 0, queues: 0, projects: 0, users: 7_000, resources: 0, rates: 3 };
  const text = renderStatus({ ...aStatus([]), omitted }, { ...view, showsAll: false });
  expect(text).toMatch(/^projects and users\n.*\nand 7,000 more \(--all lists them\)$/m);
  expect(text).toMatch(/^rates\n.*and 3 more \(--all lists them\)$/ms);
  expect(renderStatus(aStatus([]), { ...view, showsAll: false })).not.toMatch(/ more /);
});

describe("resources in status", () => {
  const slotLease = (agent: string, handle: string, forMs: number) => ({ agent, handle, forMs });
  const resource = {
    resource: "gpt-4o",
    slots: 3,
    maxWaiters: 100,
    inUse: 3,
    waiting: 2,
    waitingWeight: 4.5,
    tick: 7,
    grants: 10,
    utilisation: 0.5,
    alpha: 0.25,
    autoTune: false,
    alphaFrom: "policy" as const,
    holders: [slotLease("a1", "h1", 3_000), slotLease("a2", "h2", 40), slotLease("a1", "h3", 10)],
    waiters: [slotLease("a3", "h4", 5), slotLease("a3", "h5", 1)],
  };

  it("are not shown without resources", () => {
    expect(renderStatus(aStatus([]), { ...view, showsAll: false })).not.toContain("resources");
  });

  it("show slots in use, waiters, utilisation, α and holders", () => {
    const text = renderStatus({ ...aStatus([]), resources: [resource] }, { ...view, showsAll: false });
    expect(text).toMatch(/^gpt-4o +3\/3 +2\/100 +50 % +0.25 policy +a1 ×2 \(3 s\), a2 \(40 ms\)$/m);
  });

  it("show the origin of α, and auto-tune", () => {
    const own = { ...resource, alpha: 0.31, autoTune: true, alphaFrom: "resource" as const };
    const text = renderStatus({ ...aStatus([]), resources: [own] }, { ...view, showsAll: false });
    expect(text).toMatch(/^gpt-4o +3\/3 +2\/100 +50 % +0.31 own, moving +a1/m);
  });
});

describe("a task's story", () => {
  it("shows the result without obeying it", () => {
    expect(linesOf(completed("one\u001b[2J\ntwo\n"))).toContain(
      "result  12 characters\n  one\\x1b[2J\n  two\n\n",
    );
  });

  it.each([
    ["lines", "x\n".repeat(100)],
    ["characters", "x".repeat(5_000)],
  ])("cuts a result of many %s and says how to get it whole", (_, result) => {
    const text = linesOf(completed(result));
    expect(text.length).toBeLessThan(1_500);
    expect(text).toContain("the whole result: --json");
  });

  it("that ended without an attempt shows the state, the time, and the missing assignment", () => {
    const ended = { ...aStory({ state: "cancelled", endedIdx: 2 }), submittedAt: 0, endedAt: 5_000 };
    expect(linesOf(ended)).toContain("cancelled after 5 s, never assigned");
    expect(linesOf(aStory({}))).toContain("no attempt yet");
    const waits = [{ state: "queued", from: 0, to: 5_000 }];
    const explained = (state: string) => explanationText({ state, endedIdx: 2, endedAt: 5_000, waits });
    expect(explained("cancelled")).toMatch(
      /never assigned, as of .*\n\nwhy +It was cancelled at [\d:. -]+, 5 s after it was submitted: the task was never assigned$/,
    );
    expect(explained("expired")).toMatch(/why +Its deadline passed at [\d:. -]+, 5 s after/);
  });

  const receipt = { feasible: 1, candidates: [], ineligible: {}, decidedBy: "only", waiting: 1, waitedMs: 0 };
  const anAttempt = { attempt: 2, agent: "a1", assignedAt: 0, assignedIdx: 950, receipt };

  it("a task without a kept record still shows its end, and where the journal begins", () => {
    const ended = { state: "completed", submittedIdx: 5, endedIdx: 9 };
    const gone = "the record of this task is no longer kept (the journal begins at batch 1,917)";
    const text = linesOf(aStory({ ...ended, attempts: 2 }), undefined, 1_917);
    expect(text).toMatch(/^t {2}completed, 2 attempts\n/);
    expect(text).toContain(`events\n  ${gone}`);
    const explained = explanationText({ ...ended, attemptCount: 2 }, 1_917);
    expect(explained).toMatch(/, 2 attempts, as of /);
    expect(explained).toContain(gone);
    expect(explanationText({ ...ended, state: "cancelled" }, 1_917)).toMatch(/, never assigned, as of /);
  });

  it("fits 60 columns: no id or head is cut, and lines break between words", () => {
    const terms = { score: 0.683, successRate: 0.85, load: 0.25 };
    const agent = "claude-reviewer-eu-west-1a";
    const standing = { agent, standing: "feasible", servesKind: true, free: 3, capacity: 4, terms };
    const why = { reason: "not-before", until: Date.now() + 36 * 3_600_000 };
    const waiting = { ageMs: 0, obstacles: [why], agents: [standing] };
    const failed = {
      ...anAttempt,
      agent,
      ended: "failed",
      latencyMs: 10,
      error: "SyntaxError: an error of many words that one line of a terminal does not hold",
      receipt: { ...receipt, candidates: [{ agent, ...terms }] },
    };
    const explanation = {
      ...{ task: "t", kind: "k", project: "p", user: "u", at: 9_000, submittedIdx: 1, state: "delayed" },
      ...{ attemptCount: 1, attempts: [failed], waits: [], waiting },
    } as unknown as TaskExplanation;
    const text = renderExplanation({ explanation, showsAll: false, firstIdx: 1 }, { ...view, columns: 60 });
    expect(text.split("\n").filter((line) => line.length > 60)).toEqual([]);
    expect(text).not.toContain("…");
    expect(text).toMatch(/Not due before \d{4}-\d\d-\d\d \d\d:/);
    expect(text).toContain(`attempt 2 at ${agent}, `);
    expect(text).toMatch(/^ {2}agent +eligible +free +score$/m);
    expect(text).toMatch(/^ {4}.*many words/m);
  });

  it("a task without the beginning of its record says so, and counts all its attempts", () => {
    const cut = "the beginning of this task's record is no longer kept (the journal begins at batch 917)";
    const status = { state: "running", submittedIdx: 5 };
    const story = { ...aStory({ ...status, attempts: 2 }), attempts: [anAttempt] } as unknown as TaskStory;
    expect(linesOf(story, undefined, 917)).toMatch(/running, 2 attempts\n/);
    expect(linesOf(story, undefined, 917)).toContain(cut);
    const explained = explanationText({ ...status, attemptCount: 2, attempts: [anAttempt] }, 917);
    expect(explained).toMatch(/, 2 attempts, as of /);
    expect(explained).toContain(cut);
  });

  it("names the slots that a running attempt waits for, and the hold on their resource", () => {
    const running = { state: "running", submittedIdx: 5, attemptCount: 1, attempts: [anAttempt] };
    const slots = { resources: ["gpt-4o", "gpu"], sinceMs: 4_900 };
    expect(explanationText({ ...running, slots: [slots] })).toContain(
      "The running attempt has waited for a slot of gpt-4o and gpu for 4.9 s; `waggle explain --resource gpt-4o` ranks the requests",
    );
    const held = (until: object) =>
      explanationText({ ...running, slots: [{ ...slots, onHold: { resource: "gpu", ...until } }] });
    expect(held({ until: 9_000 })).toMatch(/resource gpu is on hold until .*; `waggle unhold resource gpu`/);
    expect(held({})).toContain("resource gpu is on hold until its probe ends, or has run for 30 s");
  });

  it("offers to replay an assignment only where the journal has its beginning", () => {
    const assigned = { state: "running", submittedIdx: 940, attemptCount: 1, attempts: [anAttempt] };
    expect(explanationText(assigned)).toContain("waggle explain t --attempt 1 shows every agent");
    expect(explanationText(assigned, 917)).not.toMatch(/--attempt|no longer kept/);
  });

  const shown = (attempt: object) =>
    linesOf({ ...aStory({ attempts: 1 }), attempts: [attempt] } as TaskStory);

  it.each([
    [{}, "sent to the agent"],
    [{ tokensReserved: 1_000, runningAt: 5 }, "runs for .+ so far, 1,000 tokens reserved"],
    [{ ended: "cancelled", endedAt: 4_000 }, "cancelled after 4 s"],
    [{ ended: "completed", tokens: 9, tokensCharged: 9 }, "completed, 9 tokens"],
    [
      { ended: "completed", tokensReserved: 1_000, tokens: 1_200, tokensCharged: 1_200 },
      "completed, 1,000 tokens reserved, 1,200 reported, 1,200 charged",
    ],
    [
      { ended: "completed", tokensReserved: 1_000, tokensCharged: 1_000 },
      "completed, 1,000 tokens reserved, none reported, 1,000 charged",
    ],
    [{ ended: "timed-out", tokensReserved: 1_000, error: "late" }, "timed-out, 1,000 tokens reserved: late"],
  ])("says what an attempt was reserved, reported and charged: %j", (attempt, words) => {
    const text = shown({ attempt: 1, agent: "a1", assignedAt: 0, assignedIdx: 1, receipt, ...attempt });
    expect(text.split("\n").find((line) => line.startsWith("attempt 1"))).toMatch(new RegExp(`: ${words}$`));
  });

  it("shows the effect of budgets on an attempt, and the exceeded budgets", () => {
    const used = { ...receipt, budget: { project: "downgrade" } };
    const open = {
      attempt: 1,
      agent: "a1",
      runsAs: "ask-mini",
      assignedAt: 0,
      assignedIdx: 1,
      receipt: used,
    };
    const cheaperKind = "as ask-mini, the cheaper kind: its project's budget had too little left";
    expect(shown({ ...open, ended: "completed" })).toContain(`  ran ${cheaperKind}`);
    expect(shown(open)).toContain(`  runs ${cheaperKind}`);
    expect(shown({ ...open, receipt })).toContain(
      "  runs as ask-mini, the cheaper kind: all agents of its kind were on hold",
    );
    const { runsAs: _, ...asItIs } = open;
    expect(shown({ ...asItIs, receipt })).not.toContain("budget");
    const both = { ...used, budget: { project: "downgrade", global: "downgrade" } };
    expect(shown({ ...asItIs, cheaperType: "haiku", receipt: both })).toContain(
      "  runs only by the cheaper type haiku: its project's budget and the swarm's budget had",
    );
    expect(shown({ ...open, cheaperType: "haiku" })).toContain(
      "  runs as ask-mini, the cheaper kind, and only by the cheaper type haiku: its project's",
    );
    expect(shown(asItIs)).toContain(
      "  runs though its project's budget had too little left: its kind has no cheaper kind or",
    );
    const noted = { ...receipt, budget: { project: "downgrade", global: "alert" } };
    expect(shown({ ...open, receipt: noted })).toContain(
      "  runs though the swarm's budget had too little left (mode alert: budget exceeded, task not held)",
    );
  });

  it("of a task that waits says why, and where to read more", () => {
    const wait: TaskWait = {
      obstacles: [
        { reason: "no-agent-serves-kind", kind: "coutn", nearMisses: ["count"], offline: 0, draining: 0 },
      ],
      ageMs: 5,
      ageTicks: 0,
      agents: [],
    };
    const text = linesOf(aStory({}, [], [{ state: "queued", from: 0 }]), wait);
    expect(text).toContain("No agent serves coutn: start an agent with --kind coutn — did you mean count?");
    expect(text).toContain("waggle explain t ");
  });
});
