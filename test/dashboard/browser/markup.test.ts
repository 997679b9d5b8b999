// Markup in every text that users and agents choose: no browser runs it, and each is shown as it was written.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../../src/client/connect.ts";
import type { Swarm } from "../../../src/client/swarm.ts";
import { natsServersFor } from "../../support/nats-server.ts";
import { skipSuite } from "../../support/programs.ts";
import { Workplace } from "../../support/waggle-process.ts";
import { chromiumPath, type OpenedPage, openPage, startBrowser } from "./browser.ts";

const suite = "markup in the dashboard";
const [server] = natsServersFor(suite);
if (chromiumPath === undefined) skipSuite(suite, "there is no Chromium: install chromium-headless-shell");

/** Allowed where a name is: no space. */
const named = (field: string) => `<img/src=x/onerror=ran.push("${field}")>`;
/** For texts of any form: each line alone would run as HTML. */
const free = (field: string) =>
  [
    `<script>ran.push("${field}")</script>`,
    `<svg onload='ran.push("${field}")'></svg>`,
    `"><iframe srcdoc="<script>parent.ran.push('${field}')</script>"></iframe>`,
    `javascript:ran.push("${field}")`,
    `\u202e{{constructor.constructor('ran.push("${field}")')()}}`,
  ].join("\n");

const fields = {
  taskId: named("task-id"),
  waitingId: named("waiting-id"),
  kind: named("kind"),
  unservedKind: named("unserved-kind"),
  cheaperKind: named("cheaper-kind"),
  role: named("role"),
  user: named("user"),
  agentType: named("agent-type"),
  labelValue: `<script>ran.push("label value")</script>`,
  resource: named("resource"),
  payload: free("payload"),
  result: free("result"),
  error: free("error"),
  output: free("output"),
  searched: named("searched"),
  filtered: named("filtered"),
  unknownTask: named("unknown-task"),
  unknownAgent: named("unknown-agent"),
} as const;

/** Names that are parts of subjects: letters, digits, _ and - alone. */
const refused = ["agent", "group", "project", "label"] as const;

describe.skipIf(server === undefined || chromiumPath === undefined)(suite, () => {
  let workplace: Workplace;
  let swarm: Swarm;
  let browser: Browser;
  let url: string;
  let stopAgent: () => Promise<void>;

  beforeAll(async () => {
    workplace = await Workplace.make(server?.path);
    await workplace.start("up").says("leading");
    const dashboard = workplace.start("dashboard", "--port", "0");
    await dashboard.says(/\/enter\/\w+/);
    url = /http:\S+\/enter\/\w+/.exec(dashboard.said)?.[0] ?? "";
    swarm = await connect({ dataFolder: workplace.dataFolder });
    await swarm.setResource(fields.resource, { slots: 1 });
    await swarm.setRate(fields.agentType, { window: "per_hour", tokensMax: 1_000_000 });
    await swarm.setKind(fields.kind, { cheaper: fields.cheaperKind });
    const agent = await swarm.agent({
      ...{ id: "inert-1", kinds: [fields.kind], role: fields.role, type: fields.agentType },
      labels: { note: fields.labelValue },
      handler: (task, { log }) => {
        log(fields.output);
        if (task.attempt === 1) throw new Error(fields.error);
        return fields.result;
      },
    });
    stopAgent = () => agent.stop();
    const { kind, role, user, payload } = fields;
    await (await swarm.submit({ id: fields.taskId, kind, role, user, payload })).result();
    await swarm.submit({ id: fields.waitingId, kind: fields.unservedKind, user });
    browser = await startBrowser();
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    await stopAgent?.();
    await swarm?.close();
    await workplace?.clear();
  });

  async function opened(): Promise<OpenedPage> {
    const result = await openPage(browser, { theme: "light", width: 1_400 });
    await result.context.addInitScript("window.ran = []");
    await result.page.goto(url);
    await result.page.getByRole("heading", { level: 1 }).waitFor();
    return result;
  }

  const looks: readonly (readonly [path: string, look?: (page: Page) => Promise<void>])[] = [
    ["/"],
    ["/agents"],
    ["/agents/inert-1"],
    [`/agents/${encodeURIComponent(fields.unknownAgent)}`],
    ["/tasks", search],
    [`/tasks?text=${encodeURIComponent(fields.filtered)}`],
    [`/tasks?kind=${encodeURIComponent(fields.kind)}&user=${encodeURIComponent(fields.user)}`],
    [`/tasks/default/${encodeURIComponent(fields.taskId)}`, readContents],
    [`/tasks/default/${encodeURIComponent(fields.waitingId)}`, openDialogs],
    [`/tasks/default/${encodeURIComponent(fields.unknownTask)}`],
    ["/fairness"],
    [`/fairness?task=${encodeURIComponent(fields.taskId)}`],
    [`/fairness?task=${encodeURIComponent(fields.unknownTask)}`],
    ["/resources"],
    ["/budgets"],
    ["/events"],
    [`/events?task=${encodeURIComponent(fields.taskId)}`],
    [`/events?types=${encodeURIComponent(fields.filtered)}`],
    ["/system"],
  ];

  it("runs nowhere, and every text is shown as it was written", async () => {
    const { page, context, complaints } = await opened();
    const shown: string[] = [];
    for (const [path, look] of looks) {
      await page.goto(new URL(path, url).href);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await expect.poll(async () => await page.locator("main .skeleton").count()).toBe(0);
      await page.getByRole("status").filter({ hasText: "Live" }).waitFor();
      await look?.(page);
      shown.push(await textOf(page));
      expect(await page.evaluate("ran"), path).toEqual([]);
      const made = page.locator(
        "[onerror], [onload], img[src=x], iframe, body script, svg[onload], a[href^=javascript]",
      );
      expect(await made.count(), path).toBe(0);
    }
    const all = shown.join("\n");
    expect(Object.keys(fields).filter((name) => !all.includes(fields[name as keyof typeof fields]))).toEqual(
      [],
    );
    // Refused filters and unknown names are answered with 4xx, which the browser notes. Nothing else is said.
    expect(complaints.filter((each) => !/status of 4\d\d/.test(each))).toEqual([]);
    await context.close();
  }, 180_000);

  it.each(refused)("is no name of a %s", async (field) => {
    const task = { kind: "k" };
    const attempt =
      field === "project"
        ? swarm.submit({ ...task, project: named(field) })
        : swarm.agent({
            ...{ id: "inert-2", kinds: ["k"], handler: () => "" },
            ...(field === "agent" ? { id: named(field) } : {}),
            ...(field === "group" ? { group: named(field) } : {}),
            ...(field === "label" ? { labels: { [named(field)]: "x" } } : {}),
          });
    await expect(attempt).rejects.toMatchObject({ code: expect.stringMatching(/^WAGGLE_INVALID/) });
  });

  /** Of the document, and of its fields. */
  async function textOf(page: Page): Promise<string> {
    return (await page.evaluate(
      `[document.body.textContent, ...[...document.querySelectorAll("input, textarea")].map(({ value }) => value)].join("\\n")`,
    )) as string;
  }

  async function search(page: Page): Promise<void> {
    await page.keyboard.press("/");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.type(fields.searched);
    await page.waitForTimeout(1_000);
  }

  async function readContents(page: Page): Promise<void> {
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.locator("[data-content=result]").waitFor();
    for (const each of await page.locator("main details summary").all()) await each.click();
  }

  /** Each shows the task's name and the equal command. */
  async function openDialogs(page: Page): Promise<void> {
    for (const name of ["Reschedule…", "Cancel…", "Copy…"]) {
      await page.getByRole("button", { name, exact: true }).click();
      await page.getByRole("dialog").waitFor();
      expect(await page.evaluate("ran"), name).toEqual([]);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
  }
});
