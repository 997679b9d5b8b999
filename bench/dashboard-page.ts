// What a page of the dashboard costs the browser, with 200 agents, 10,000 past tasks and some 2,000 events per second.
// Told are the main thread's time per second, the longest task, changes of the document per second, and the events.
// Real processes on a real nats-server, and Chromium.
//
//     npm run bench:dashboard-page       each page for 10 s; exits 1 above 100 ms/s, 50 ms, or 4 changes per second
//     npm run bench:dashboard-page -- --only agents --seconds 5

import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Swarm } from "waggledance";
import { type OpenedPage, openPage, startBrowser } from "../test/dashboard/browser/browser.ts";
import { readFlags } from "../test/support/script-flags.ts";
import { startWatchedSwarm } from "./harness/dashboard.ts";

const addresses = {
  ...{ overview: "/", agents: "/agents", agent: "/agents/worker-7", tasks: "/tasks", fairness: "/fairness" },
  ...{ resources: "/resources", budgets: "/budgets", events: "/events", system: "/system" },
} as const;

const USAGE = `npm run bench:dashboard-page -- [--only PAGE]… [--seconds N] [--rate N]

  --only     pages: ${Object.keys(addresses).join(", ")}; default all
  --seconds  for each page (default 10)
  --rate     tasks a second, with about three events each (default 700)`;

const { values } = readFlags(USAGE, () =>
  parseArgs({
    options: {
      only: { type: "string", multiple: true, default: Object.keys(addresses) },
      seconds: { type: "string", default: "10" },
      rate: { type: "string", default: "700" },
      help: { type: "boolean", default: false },
    },
  }),
);
const seconds = Number(values.seconds);
const rate = Number(values.rate);

const allowed = { busyMs: 100, longestMs: 50, updates: 4 };
const PAST_TASKS = 10_000;
const STEP_MS = 20;
/** From opening a page to the measurement. */
const SETTLE_MS = 3_000;

/** Runs in the page: counts long tasks, and microtasks that changed the document. */
const WATCH = `
  window.seen = { longest: 0, updates: 0 };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.longest = Math.max(seen.longest, duration);
  }).observe({ type: "longtask" });
  new MutationObserver(() => { seen.updates += 1; }).observe(document.querySelector("main"), {
    subtree: true, childList: true, characterData: true, attributes: true,
  });`;

interface Cost {
  /** Main-thread time per second, ms. */
  readonly busyMs: number;
  /** The longest task, ms; 0: none above 50. */
  readonly longestMs: number;
  /** Changes of the document per second. */
  readonly updates: number;
  /** Events per second that the dashboard heard at the end, over ten seconds. */
  readonly eventsPerSecond: number;
}

async function costOf({ page, context }: OpenedPage, address: string): Promise<Cost> {
  await page.goto(address);
  await page.getByRole("status").filter({ hasText: "Live" }).waitFor();
  await delay(SETTLE_MS);
  const devtools = await context.newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const taskMs = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return (metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0) * 1_000;
  };
  await page.evaluate(WATCH);
  const fromMs = await taskMs();
  await delay(seconds * 1_000);
  const busyMs = ((await taskMs()) - fromMs) / seconds;
  const { longest, updates } = (await page.evaluate("seen")) as { longest: number; updates: number };
  const eventsPerSecond = (await page.evaluate(
    "fetch('/api/system').then((answer) => answer.json()).then((it) => it.dashboard.eventsPerSecond)",
  )) as number;
  await devtools.detach();
  return { busyMs, longestMs: longest, updates: updates / seconds, eventsPerSecond };
}

/** Submits at the rate until `stop`. */
function keepSubmitting(swarm: Swarm): { stop(): Promise<void> } {
  let isOver = false;
  const kinds = ["count", "digest", "outline", "embed", "review"];
  const run = async () => {
    const startedMs = performance.now();
    for (let sent = 0; !isOver; await delay(STEP_MS)) {
      const due = Math.floor(((performance.now() - startedMs) / 1_000) * rate);
      const tasks = Array.from({ length: Math.max(0, due - sent) }, (_, at) => ({
        kind: kinds[(sent + at) % kinds.length] ?? "count",
        user: `user-${(sent + at) % 20}`,
        project: `project-${(sent + at) % 4}`,
      }));
      await Promise.allSettled(tasks.map((task) => swarm.submit(task))); // the page is measured, not the swarm
      sent = Math.max(sent, due);
    }
  };
  const done = run();
  return {
    stop: async () => {
      isOver = true;
      await done;
    },
  };
}

async function main(): Promise<number> {
  const { swarm, url, stop } = await startWatchedSwarm("agents");
  const browser = await startBrowser();
  try {
    const load = keepSubmitting(swarm);
    const opened = await openPage(browser, { theme: "light", width: 1_400 });
    await opened.page.goto(url);
    await delay((PAST_TASKS / rate) * 1_000);
    let isOver = false;
    for (const name of values.only) {
      const path = addresses[name as keyof typeof addresses];
      if (path === undefined) throw new Error(`there is no page ${name}`);
      const cost = await costOf(opened, new URL(path, url).href);
      isOver ||= cost.busyMs > allowed.busyMs || cost.longestMs > allowed.longestMs;
      isOver ||= cost.updates > allowed.updates;
      const longest = cost.longestMs === 0 ? "none over 50" : `${cost.longestMs.toFixed(0)}`;
      console.log(
        `${name.padEnd(10)} ${cost.busyMs.toFixed(0).padStart(4)} ms/s of the main thread; longest task, ms: ${longest}; ${cost.updates.toFixed(1)} updates/s, at ${cost.eventsPerSecond.toFixed(0)} events/s`,
      );
    }
    await load.stop();
    if (isOver) console.error("a page needs more than is allowed");
    return isOver ? 1 : 0;
  } finally {
    await browser.close();
    await stop();
  }
}

process.exitCode = await main();
