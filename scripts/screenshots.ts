// Takes the pictures of the dashboard in docs/images, from a swarm that runs for half a minute.
//   npm run screenshots              the three of the README
//   npm run screenshots -- FOLDER    every page in both themes, 400 and 1,400 px wide, to look at

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Page } from "playwright-core";
import { type Look, openPage, startBrowser } from "../test/dashboard/browser/browser.ts";
import { type LivelySwarm, startLivelySwarm } from "../test/dashboard/browser/lively-swarm.ts";
import { findNatsServers } from "../test/support/nats-server.ts";
import { readFlags } from "../test/support/script-flags.ts";

/** Long enough for a shape in the charts. */
const WARM_UP_MS = 40_000;
/** From the first figures to drawn charts. */
const SETTLE_MS = 1_500;

const USAGE = `npm run screenshots -- [FOLDER]

Without a folder: the pictures of the README, in docs/images. With a folder: every page in both themes, 400 and
1,400 px wide. Needs chromium-headless-shell or chromium, and a nats-server; takes some minutes.`;

const { positionals } = readFlags(USAGE, () =>
  parseArgs({ allowPositionals: true, options: { help: { type: "boolean", default: false } } }),
);
const [folder] = positionals;
const images = fileURLToPath(new URL("../docs/images", import.meta.url));

const [server] = findNatsServers();
if (server === undefined) throw new Error("no nats-server on the PATH or in WAGGLE_NATS_SERVERS");
const lively = await startLivelySwarm({ server: server.path });
const browser = await startBrowser();
try {
  await pause(WARM_UP_MS);
  if (folder === undefined) await takeForReadme(lively);
  else await takeAll(lively, folder);
} finally {
  await browser.close();
  await lively.stop();
}

async function takeForReadme(swarm: LivelySwarm): Promise<void> {
  await mkdir(images, { recursive: true });
  const task = await failedTask(swarm);
  await take(swarm, { theme: "light", width: 1_400, height: 1_000 }, [
    ["/", join(images, "dashboard-overview.png")],
  ]);
  await take(swarm, { theme: "dark", width: 1_400, height: 900 }, [
    [task, join(images, "dashboard-task.png")],
  ]);
  await take(swarm, { theme: "light", width: 1_400, height: 1_280 }, [
    ["/fairness", join(images, "dashboard-fairness.png")],
  ]);
}

async function takeAll(swarm: LivelySwarm, into: string): Promise<void> {
  await mkdir(into, { recursive: true });
  const waiting = await swarm.swarm.submit({ id: "waits-for-a-painter", kind: "paint", payload: "a hive" });
  const task = await failedTask(swarm);
  const past = task.replace(/^\/tasks\/([^/]+)\/(.+)$/, "/fairness?project=$1&task=$2");
  const paths = {
    ...{
      overview: "/",
      agents: "/agents",
      agent: "/agents/reader-2",
      tasks: "/tasks",
      fairness: "/fairness",
    },
    ...{ resources: "/resources", budgets: "/budgets", events: "/events", system: "/system" },
    ...{ task, past, waiting: `/tasks/default/${waiting.id}` },
    ...{
      filtered: "/tasks?state=failed,dead-lettered&kind=ocr",
      nothing: "/tasks?kind=none",
      nowhere: "/tasks/acme/none",
    },
  };
  for (const theme of ["light", "dark"] as const)
    for (const width of [1_400, 400]) {
      const named = Object.entries(paths).map(([name, path]): [string, string] => [
        path,
        join(into, `${name}-${theme}-${width}.png`),
      ]);
      await take(swarm, { theme, width }, named);
    }
}

async function take(
  { url }: LivelySwarm,
  look: Look,
  shots: readonly (readonly [path: string, file: string])[],
): Promise<void> {
  const { page, context, complaints } = await openPage(browser, look);
  await page.goto(url);
  for (const [path, file] of shots) {
    await page.goto(new URL(path, url).href);
    await settle(page);
    await page.screenshot({ path: file, fullPage: folder !== undefined });
    console.log(file);
  }
  for (const complaint of complaints) console.log(`complaint: ${complaint}`);
  await context.close();
}

async function settle(page: Page): Promise<void> {
  await page.getByRole("status").filter({ hasText: "Live" }).waitFor();
  await pause(SETTLE_MS);
}

/** The page of a task with more than one attempt. */
async function failedTask({ swarm }: LivelySwarm): Promise<string> {
  const { tasks } = await swarm.taskPage({ kind: "ocr", sort: "attempts", limit: 1 });
  const [row] = tasks;
  if (row === undefined) throw new Error("no task has an attempt yet");
  return `/tasks/${row.project}/${encodeURIComponent(row.task)}`;
}
