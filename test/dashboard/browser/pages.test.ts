// The dashboard in a real browser, beside a swarm of real processes on a real nats-server.

import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { natsServersFor } from "../../support/nats-server.ts";
import { skipSuite } from "../../support/programs.ts";
import type { RunningWaggle } from "../../support/waggle-process.ts";
import { chromiumPath, type Look, type OpenedPage, openPage, startBrowser } from "./browser.ts";
import { type LivelySwarm, startLivelySwarm } from "./lively-swarm.ts";

const [server] = natsServersFor("the dashboard in a browser");
if (chromiumPath === undefined)
  skipSuite("the dashboard in a browser", "there is no Chromium: install chromium-headless-shell");

const pages = [
  ["/", "Overview"],
  ["/agents", "Agents"],
  ["/agents/scribe-1", "scribe-1"],
  ["/tasks", "Tasks"],
  ["/fairness", "Fairness"],
  ["/resources", "Resources"],
  ["/budgets", "Budgets"],
  ["/events", "Events"],
  ["/system", "System"],
] as const;

/** Of a test that starts coordinators and waits for their terms; on a quiet machine it takes 10 s. */
const failOverMs = 180_000;

describe.skipIf(server === undefined || chromiumPath === undefined)("the dashboard in a browser", () => {
  let lively: LivelySwarm;
  let browser: Browser;
  let origin: string;
  /** The leader of the second term. */
  let next: RunningWaggle | undefined;

  beforeAll(async () => {
    lively = await startLivelySwarm({ server: server?.path ?? "", speed: 2 });
    origin = new URL(lively.url).origin;
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await lively?.stop();
  });

  /** Signed in, at a page of the dashboard. */
  async function opened(path: string, look: Look = { theme: "light", width: 1_400 }): Promise<OpenedPage> {
    const result = await openPage(browser, look);
    await result.page.goto(lively.url);
    await result.page.goto(`${origin}${path}`);
    await result.page.getByRole("status").filter({ hasText: "Live" }).waitFor();
    return result;
  }

  it.each([1_400, 400])(
    "shows each page in both themes, %i px wide, without a complaint and without a scroll bar below",
    async (width) => {
      const { page, context, complaints } = await opened("/", { theme: "light", width });
      const theme = async () => await page.locator("html").getAttribute("data-theme");
      expect(await theme()).toBe("light");
      for (const [path, title] of pages) {
        await follow(page, path);
        await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
        for (const other of ["dark", "light"]) {
          await page.getByRole("button", { name: `Use the ${other} theme` }).click();
          expect(await theme()).toBe(other);
          await drawn(page);
          expect(await page.locator("main [role=alert]").allTextContents(), path).toEqual([]);
          const tooWide = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
          expect(tooWide, `${path} is too wide`).toBeLessThanOrEqual(0);
        }
      }
      expect(complaints).toEqual([]);
      await context.close();
    },
  );

  it("shows event loop and memory of the leader and of the dashboard", async () => {
    const { page, context } = await opened("/system");
    for (const title of ["Coordinators", "This dashboard"]) {
      const card = page.locator("main section.card", { has: page.getByRole("heading", { name: title }) });
      const factOf = async (name: string) =>
        await card.locator("dt", { hasText: name }).locator("+ dd").textContent();
      expect(await factOf("Loop lag p99, max")).toMatch(/^[\d.]+ m?s, [\d.]+ m?s$/);
      expect(await factOf("Memory")).toMatch(/^[\d.]+ MiB; heap [\d.]+ MiB of [\d.]+ MiB$/);
    }
    await context.close();
  });

  it("says when the windows of budgets and rates free tokens again", async () => {
    const { page, context } = await opened("/budgets");
    const cardOf = (title: string) =>
      page.locator("main section.card", { has: page.getByRole("heading", { name: title }) });
    await cardOf("Project acme")
      .getByText(/^(All tokens return|Next tokens return at .+, all by) .+\.$/)
      .waitFor();
    await cardOf("large")
      .getByText(/reserved for open attempts; (all|next) tokens return at /)
      .waitFor();
    await context.close();
  });

  it("shows all agents and turns at the moment of a past decision, from its receipt", async () => {
    const { tasks } = await lively.swarm.taskPage({ kind: "embed", state: ["completed"], limit: 1 });
    const [task] = tasks;
    const { page, context, complaints } = await opened(`/tasks/${task?.project}/${task?.task}`);
    await page.getByRole("link", { name: "All agents, shares and turns at that moment" }).first().click();
    await page.getByRole("heading", { level: 1, name: "Fairness then" }).waitFor();
    const decision = page.locator("[data-part=decision]");
    await decision.getByText("the replay agrees").waitFor();
    expect(await decision.locator(".sentence").textContent()).toContain(task?.task);
    expect(await decision.locator("tbody tr").count()).toBeGreaterThanOrEqual(7);
    await page.getByRole("img", { name: /^Waterfall of \d+ assignments$/ }).waitFor();
    await page.getByLabel("Batch index or task id").fill("999999999");
    await page.keyboard.press("Enter");
    await page
      .getByRole("alert")
      .getByText(/the journal ends with batch \d+/)
      .waitFor();
    await page.getByRole("link", { name: "Fairness now" }).click();
    await page.getByRole("heading", { level: 1, name: "Fairness", exact: true }).waitFor();
    expect(complaints.filter((each) => !each.includes("400"))).toEqual([]); // the browser notes the refusal
    await context.close();
  });

  it("begins in the system's theme", async () => {
    const { page, context } = await opened("/", { theme: "dark", width: 1_400 });
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
    await context.close();
  });

  it("leads from a figure of the overview to its list, and keeps filters in the address", async () => {
    const { page, context, complaints } = await opened("/");
    await page.locator("a.tile", { hasText: "Done per minute" }).click();
    await page.getByRole("heading", { level: 1, name: "Tasks" }).waitFor();
    expect(new URL(page.url()).search).toBe("?state=completed");
    await page.getByLabel("kind", { exact: true }).selectOption("embed");
    await page.getByLabel("Search tasks").fill("bob");
    await expect
      .poll(() => new URL(page.url()).searchParams.toString())
      .toBe("state=completed&kind=embed&text=bob");
    await page.reload();
    const row = page.getByRole("list", { name: "Tasks" }).getByRole("listitem").first();
    await row.waitFor();
    expect(await row.textContent()).toMatch(/embed-bob-.*completed/);
    await row.getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: /^embed-bob-/ }).waitFor();
    await page.goBack();
    await page.getByRole("list", { name: "Tasks" }).waitFor();
    expect(complaints).toEqual([]);
    await context.close();
  });

  it("links the charts: pointing at one moves the others, and a drag zooms all", async () => {
    const { page, context } = await opened("/");
    const chart = (title: string) => page.locator(`[data-chart="${title}"] .u-over`);
    await chart("Throughput").waitFor();
    await expect
      .poll(async () => await page.locator('[data-chart="Depth"] .u-value').allTextContents())
      .not.toEqual([]);
    const box = await chart("Throughput").boundingBox();
    if (box === null) throw new Error("the chart has no box");
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
    const cursor = page.locator('[data-chart="Utilisation"] .u-cursor-x');
    await expect.poll(async () => await cursor.getAttribute("style")).toContain("translate");
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await page.getByRole("button", { name: "Reset zoom" }).click();
    await expect.poll(async () => await page.getByRole("button", { name: "Reset zoom" }).count()).toBe(0);
    await context.close();
  });

  it("submits a task, explains the wait, cancels and retries the task", async () => {
    const { page, context, complaints } = await opened("/tasks");
    await page.getByRole("button", { name: "New task" }).click();
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await page.locator(".dialog .error-text").first().waitFor();
    await page.locator("input[name=kind]").fill("paint");
    await page.locator("input[name=id]").fill("from-the-page");
    await page.locator("textarea[name=payload]").fill("a hive in June");
    await page.getByRole("button", { name: "Show the command" }).click();
    await page.locator(".dialog code", { hasText: "waggle submit" }).waitFor();
    await page.getByRole("button", { name: "Submit", exact: true }).click();

    await page.getByRole("heading", { level: 1, name: "from-the-page" }).waitFor();
    const why = page.locator("[data-part=wait]");
    await why.waitFor();
    expect(await why.textContent()).toContain("paint");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.locator("[data-content=payload]", { hasText: "a hive in June" }).waitFor();

    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.locator(".dialog code", { hasText: "waggle cancel from-the-page" }).waitFor();
    await page.getByRole("button", { name: "Cancel the task" }).click();
    await page.locator("main .badge", { hasText: "cancelled" }).first().waitFor();
    await page.getByRole("button", { name: "Retry…" }).click();
    await page.getByRole("button", { name: "Retry", exact: true }).click();
    await page.locator("main .badge", { hasText: "queued" }).first().waitFor();
    expect((await lively.swarm.taskStatus("from-the-page")).round).toBe(2);
    await lively.swarm.cancel("from-the-page");
    expect(complaints.filter((text) => !text.includes("400"))).toEqual([]);
    await context.close();
  });

  it("cancels all that match once their count is confirmed", async () => {
    const ids = Array.from({ length: 7 }, (_, at) => `stuck-${at}`);
    for (const id of ids) await lively.swarm.submit({ id, kind: "unserved", user: "frida" });
    const { page, context } = await opened("/tasks?kind=unserved");
    await page.getByRole("button", { name: "Cancel all…" }).click();
    await page.getByRole("button", { name: "Cancel 7 tasks" }).click();
    await page.locator(".toast", { hasText: "7" }).waitFor();
    const states = await Promise.all(ids.map(async (id) => (await lively.swarm.taskStatus(id)).state));
    expect(new Set(states)).toEqual(new Set(["cancelled"]));
    await context.close();
  });

  it("shows a task's needs and attributes, and finds tasks by an attribute", async () => {
    const { swarm } = lively;
    const needs = { gpu: ["a100", "h100"] };
    await swarm.submit({
      id: "needy",
      kind: "unserved",
      needs,
      affinity: "s-1",
      attributes: { ticket: "OPS-17" },
    });
    const { page, context, complaints } = await opened("/tasks/default/needy");
    const facts = page.locator("dl.facts").first();
    for (const fact of ["gpu=a100,h100", "s-1"]) await facts.getByText(fact, { exact: true }).waitFor();
    await facts.getByRole("link", { name: "OPS-17" }).click();
    await page.getByText("waggle tasks --attribute ticket=OPS-17").waitFor();
    await page.getByRole("listitem").filter({ hasText: "needy" }).waitFor();
    expect(await page.getByRole("searchbox", { name: "attribute" }).inputValue()).toBe("ticket=OPS-17");
    const field = page.getByRole("searchbox", { name: "attribute" });
    await field.fill("OPS-17");
    await field.press("Enter");
    await page.getByText("attribute: must be name=value").waitFor();
    expect(await page.getByRole("button", { name: "Cancel all…" }).count()).toBe(0);
    await field.fill("ticket=none");
    // Drawn again with new counts meanwhile: what was typed stays.
    await swarm.submit({ id: "meanwhile", kind: "another-unserved" });
    const kinds = page.getByRole("combobox", { name: "kind" });
    await kinds.getByRole("option", { name: "another-unserved" }).waitFor({ state: "attached" });
    expect(await field.inputValue()).toBe("ticket=none");
    await field.press("Enter");
    await page.getByText("No task matches").waitFor();
    for (const id of ["needy", "meanwhile"]) await swarm.cancel(id);
    expect(complaints.filter((each) => !each.includes("400"))).toEqual([]); // the browser notes the refusal
    await context.close();
  });

  it("reschedules a waiting task", async () => {
    await lively.swarm.submit({ id: "tomorrow", kind: "unserved" });
    const { page, context, complaints } = await opened("/tasks/default/tomorrow");
    await page.getByRole("button", { name: "Reschedule…" }).click();
    await page.getByLabel("Not before").fill("2031-05-06T07:08:09");
    await page.getByRole("button", { name: "Go on" }).click();
    await page.locator(".dialog code", { hasText: "waggle reschedule tomorrow" }).waitFor();
    await page.getByRole("button", { name: "Reschedule", exact: true }).click();
    await page.locator("main .badge", { hasText: "delayed" }).first().waitFor();
    expect((await lively.swarm.taskStatus("tomorrow")).state).toBe("delayed");
    await lively.swarm.cancel("tomorrow");
    expect(complaints).toEqual([]);
    await context.close();
  });

  it("frees a stuck attempt, and drains its agent and ends the drain", async () => {
    const { swarm } = lively;
    const agent = await swarm.agent({
      ...{ id: "stuck-1", kinds: ["stuck"], maxConcurrent: 2 },
      handler: async (_, { signal }) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        return "";
      },
    });
    await swarm.submit({ id: "hangs", kind: "stuck", maxAttempts: 1 });
    const { page, context, complaints } = await opened("/tasks/default/hangs");
    await page.getByRole("button", { name: "Revoke…" }).click();
    await page.locator(".dialog code", { hasText: "waggle revoke hangs" }).waitFor();
    await page.getByRole("button", { name: "Revoke", exact: true }).click();
    await page.locator("article .badge", { hasText: "revoked" }).first().waitFor();

    await page.goto(`${origin}/agents/stuck-1`);
    await page.getByRole("button", { name: "Drain…" }).click();
    await page.locator(".dialog code", { hasText: "waggle drain stuck-1" }).waitFor();
    await page.getByRole("button", { name: "Drain", exact: true }).click();
    await page.getByRole("button", { name: "End the drain" }).click();
    await page.locator(".dialog code", { hasText: "waggle undrain stuck-1" }).waitFor();
    await page.locator(".dialog").getByRole("button", { name: "End the drain" }).click();
    await page.getByRole("button", { name: "Drain…" }).waitFor();
    expect(complaints).toEqual([]);
    await swarm.cancel("hangs").catch(() => undefined); // it may have ended with its only attempt
    await agent.stop();
    await context.close();
  });

  it("closes its stream while hidden, and goes on when seen again", async () => {
    const { page, context } = await opened("/agents");
    const setHidden = async (isHidden: boolean) => {
      await page.evaluate(
        `Object.defineProperty(document, "hidden", { configurable: true, get: () => ${isHidden} });` +
          `document.dispatchEvent(new Event("visibilitychange"))`,
      );
    };
    const views = async () =>
      await page.evaluate(
        "fetch('/api/system').then((answer) => answer.json()).then((it) => it.dashboard.liveViews)",
      );
    const before = (await views()) as number;
    await setHidden(true);
    await page.getByRole("status").filter({ hasText: "Paused" }).waitFor();
    await expect.poll(views).toBe(before - 1);
    await setHidden(false);
    await page.getByRole("status").filter({ hasText: "Live" }).waitFor();
    await expect.poll(views).toBe(before);
    await context.close();
  });

  it("pauses and resumes the swarm", async () => {
    const { page, context, complaints } = await opened("/");
    await page.getByRole("button", { name: "Pause…" }).click();
    await page.locator(".dialog code", { hasText: "waggle pause" }).waitFor();
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await page.locator(".verdict", { hasText: "paused" }).waitFor();
    await page.getByRole("button", { name: "Resume…" }).click();
    await page.getByRole("button", { name: "Resume", exact: true }).click();
    await page.getByRole("button", { name: "Pause…" }).waitFor();
    expect((await lively.swarm.status()).paused).toBeUndefined();
    expect(complaints).toEqual([]);
    await context.close();
  });

  it("without an operator shows the effect of each change, and the option to permit changes", async () => {
    const { workplace, swarm } = lively;
    const { url } = JSON.parse(await readFile(join(workplace.dataFolder, "broker.json"), "utf8"));
    const login = ["--nats", url, "--nkey", join(workplace.dataFolder, "user.nk")];
    const reading = workplace.start("dashboard", "--port", "0", ...login);
    await reading.says(/\/enter\/\w+/);
    const [address = ""] = /http:\S+\/enter\/\w+/.exec(reading.said) ?? [];
    const { page, context, complaints } = await openPage(browser, { theme: "dark", width: 1_400 });
    await page.goto(address);
    await page.getByRole("button", { name: "Pause…" }).click();
    const refusal = page.locator(".dialog [role=alert]");
    await refusal.getByText("start `waggle dashboard` with --operator-config FILE").waitFor();
    await page.locator(".dialog code", { hasText: "waggle pause" }).waitFor();
    expect(await page.getByRole("button", { name: "Pause", exact: true }).isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Keep as it is" }).click();
    await page.getByRole("link", { name: "Tasks", exact: true }).click();
    await page.getByRole("button", { name: "New task" }).click();
    await refusal.waitFor();
    await page.locator("input[name=kind]").fill("count");
    await page.getByRole("button", { name: "Show the command" }).click();
    await page.locator(".dialog code", { hasText: "waggle submit --kind count" }).waitFor();
    expect(await page.getByRole("button", { name: "Submit", exact: true }).isDisabled()).toBe(true);
    expect((await swarm.status()).paused).toBeUndefined();
    expect(complaints).toEqual([]);
    await context.close();
    await reading.kill("SIGTERM");
  });

  it("finds a task and a page by keyboard", async () => {
    await lively.swarm.submit({ id: "needle-in-the-hive", kind: "unserved" });
    const { page, context } = await opened("/");
    await page.keyboard.press("/");
    await page.keyboard.type("needle");
    await page
      .getByRole("option", { name: /needle-in-the-hive/ })
      .first()
      .waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "needle-in-the-hive" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.getByRole("heading", { level: 1, name: "System" }).waitFor();
    await lively.swarm.cancel("needle-in-the-hive");
    await context.close();
  });

  it("answers neither a foreign Host nor a foreign Origin", async () => {
    const cookie = await signedIn();
    expect(await statusOf("/api/overview", { cookie })).toBe(200);
    expect(await statusOf("/api/overview", { cookie, host: "evil.example" })).toBe(403);
    expect(await statusOf("/api/actions/pause", { cookie, origin: "http://evil.example" }, "POST")).toBe(403);
    expect(await statusOf("/api/actions/pause", { cookie, origin }, "POST")).toBe(403);
    expect(await statusOf("/api/overview", {})).toBe(401);
  });

  // A standby may take over between two looks of the dashboard: a swarm without a standby is surely seen as lost.
  it(
    "says when the leader is gone, and comes back with the next one",
    async () => {
      const { page, context } = await opened("/");
      await lively.standby.kill("SIGKILL");
      await lively.leader.kill("SIGKILL");
      await page.locator("[data-lost=leader]").waitFor();
      next = await lively.startCoordinator();
      await showsTerm(page, 2);
      await context.close();
    },
    failOverMs,
  );

  it(
    "comes back also in a tab that was hidden meanwhile, and with a standby",
    async () => {
      const { page, context } = await opened("/");
      const other = await opened("/");
      const standby = await lively.startCoordinator();
      await next?.kill("SIGKILL");
      await showsTerm(page, 3);

      await standby.kill("SIGKILL");
      await page.locator("[data-lost=leader]").waitFor();
      await hide(page, true);
      await page.getByRole("status").filter({ hasText: "Paused" }).waitFor();
      await lively.startCoordinator();
      await showsTerm(other.page, 4); // so the dashboard has told all who watch
      await hide(page, false);
      await showsTerm(page, 4);
      await context.close();
      await other.context.close();
    },
    failOverMs,
  );

  /** Live again, under the leader of the term. */
  async function showsTerm(page: Page, term: number): Promise<void> {
    await page.locator("[data-lost]").waitFor({ state: "detached" });
    await page.getByRole("status").filter({ hasText: "Live" }).waitFor();
    await expect
      .poll(async () => await page.locator(".head p").first().textContent())
      .toContain(`term ${term}`);
  }

  /** As when another tab is chosen. A browser without a window never does it by itself. */
  async function hide(page: Page, isHidden: boolean): Promise<void> {
    await page.evaluate(
      `Object.defineProperty(document, "hidden", { configurable: true, value: ${isHidden} });
       document.dispatchEvent(new Event("visibilitychange"))`,
    );
  }

  /** Live, and with figures instead of their outlines. */
  async function drawn(page: Page): Promise<void> {
    await page.getByRole("status").filter({ hasText: "Live" }).waitFor();
    await expect.poll(async () => await page.locator("main .skeleton").count()).toBe(0);
  }

  /** Goes to a page as a reader does: by the navigation, or by a row's link. */
  async function follow(page: Page, path: string): Promise<void> {
    const link = page.locator(`nav a[href="${path}"], main a[href="${path}"]`).first();
    await link.waitFor();
    await link.click();
  }

  it("says when its own server is gone, and keeps the last figures", async () => {
    const { page, context } = await opened("/agents");
    await lively.stopDashboard();
    await page.locator("[data-lost=dashboard]").waitFor();
    expect(await page.getByRole("status").first().textContent()).toBe("Reconnecting");
    expect(await page.getByRole("link", { name: "scribe-1" }).count()).toBe(1);
    const again = lively.workplace.start("dashboard", "--port", new URL(lively.url).port);
    await again.says(/\/enter\/\w+/);
    await page.locator("[data-lost=session]", { hasText: "Open the link" }).waitFor();
    const other = await context.newPage();
    await other.goto(/http:\S+\/enter\/\w+/.exec(again.said)?.[0] ?? "");
    await page.getByRole("status").filter({ hasText: "Live" }).waitFor();
    await page.locator("[data-lost]").waitFor({ state: "detached" });
    await context.close();
  });

  /** The cookie of the dashboard, as a browser gets it. */
  async function signedIn(): Promise<string> {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(lively.url);
    const cookies = await context.cookies();
    await context.close();
    return cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  }

  /** `fetch` allows no Host header of one's own. */
  async function statusOf(
    path: string,
    headers: Record<string, string>,
    method = "GET",
  ): Promise<number | undefined> {
    return await new Promise((resolve, reject) => {
      const asked = request(
        new URL(path, origin),
        { method, headers: { "content-type": "application/json", ...headers } },
        (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        },
      );
      asked.on("error", reject);
      asked.end(method === "POST" ? "{}" : undefined);
    });
  }
});
