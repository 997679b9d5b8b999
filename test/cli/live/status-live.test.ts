// The live view of `waggle status --watch` without a terminal: what keys choose, and what frames show.

import { describe, expect, it } from "vitest";
import type { Key } from "../../../src/cli/live/screen.ts";
import { frameOf } from "../../../src/cli/live/status-frame.ts";
import { type LiveModel, newModel, pressed, rowsOf, tableOf } from "../../../src/cli/live/status-model.ts";
import { liveTables, projectTables } from "../../../src/cli/live/status-tables.ts";
import { Output } from "../../../src/cli/output.ts";
import type { StatusResponse } from "../../../src/protocol/schemas.ts";
import { aKind, anAgent, aStatus } from "../../support/statuses.ts";
import { aShell } from "../shell.ts";

const { colors, asStarted } = new Output(aShell(), { json: false });

const status = aStatus({
  tasks: { queued: 12, running: 3 },
  agents: [
    anAgent("a1", {
      load: 0.2,
      inFlight: 1,
      completed: 20,
      kinds: [aKind("count", { attempts: 4, completed: 3 })],
    }),
    anAgent("a2", { load: 0.9, inFlight: 4, completed: 5, status: "busy", kinds: [aKind("review")] }),
    anAgent("a10", { load: 0.5, inFlight: 2, completed: 7, unresponsive: true }),
    anAgent("gone", { status: "offline", completed: 1 }),
  ],
  queues: [
    { kind: "count", waiting: 9, oldestMs: 2_000, agents: 2 },
    { kind: "reveiw", waiting: 3, oldestMs: 1_000, agents: 0 },
  ],
});

/** Keys by their names; a single character is typed as such. */
function modelAfter(
  keys: readonly string[],
  model: LiveModel = newModel(liveTables, { showsAll: false }),
): LiveModel {
  let now = model;
  for (const name of keys) {
    const next = pressed(now, keyOf(name), 10);
    if (typeof next === "string") throw new Error(`${name} ends the view`);
    now = next;
  }
  return now;
}

function keyOf(name: string): Key {
  const isCharacter = name.length === 1;
  return {
    name: isCharacter && !/[a-z0-9]/i.test(name) ? undefined : name.toLowerCase(),
    text: isCharacter ? name : undefined,
    ctrl: false,
    shift: isCharacter && name !== name.toLowerCase(),
  };
}

const firstCells = (model: LiveModel, of: StatusResponse = status) =>
  rowsOf(model, of).rows.map(({ cells }) => cells[0]);

const lines = (model: LiveModel, size = { columns: 80, rows: 24 }, of = status, notice?: string) =>
  frameOf(model, of, { colors, asStarted, size, project: undefined, notice }).lines;

describe("the rows", () => {
  it("come with the most important first, without offline agents until `a`", () => {
    expect(firstCells(modelAfter([]))).toEqual(["a10", "a2", "a1"]);
    expect(firstCells(modelAfter(["a"]))).toEqual(["a10", "a2", "a1", "gone"]);
  });

  it("are sorted by each column in turn, and reversed", () => {
    expect(firstCells(modelAfter(["s"]))).toEqual(["a1", "a2", "a10"]);
    expect(firstCells(modelAfter(["s", "r"]))).toEqual(["a10", "a2", "a1"]);
    expect(firstCells(modelAfter(["s", "s", "s"]))).toEqual(["a2", "a10", "a1"]); // in flight, by load
    expect(firstCells(modelAfter(["s", "S"]))).toEqual(firstCells(modelAfter([])));
    const around = Array.from({ length: tableOf(modelAfter([])).columns.length + 1 }, () => "s");
    expect(firstCells(modelAfter(around))).toEqual(firstCells(modelAfter([])));
  });

  it("keep an order for each table", () => {
    const model = modelAfter(["s", "tab", "s", "s", "s"]);
    expect(firstCells(model)).toEqual(["count", "reveiw"]);
    expect(firstCells(modelAfter(["left"], model))).toEqual(["a1", "a2", "a10"]);
  });

  it("contain every word of the filter, in any column", () => {
    const model = modelAfter(["/", ..."BUSY 4/4", "return"]);
    expect(firstCells(model)).toEqual(["a2"]);
    expect(firstCells(modelAfter(["/", ..."zzz"]))).toEqual([]);
    expect(lines(modelAfter(["/", ..."zzz"])).join("\n")).toContain("no row matches the filter");
    expect(firstCells(modelAfter(["escape"], model))).toHaveLength(3);
  });
});

describe("keys", () => {
  it("are text while a filter is typed, `q` too", () => {
    const typed = modelAfter(["/", "q", "x", "backspace", "s"]);
    expect(typed).toMatchObject({ filter: "qs", isTyping: true });
    expect(modelAfter(["return"], typed)).toMatchObject({ filter: "qs", isTyping: false });
    expect(modelAfter(["escape"], typed)).toMatchObject({ filter: "", isTyping: false });
    expect(pressed(typed, { ...keyOf("c"), ctrl: true }, 10)).toBe("interrupt");
    expect(pressed(modelAfter(["return"], typed), keyOf("q"), 10)).toBe("quit");
  });

  it("choose a table by number, and ignore a number without a table", () => {
    expect(tableOf(modelAfter(["3"])).name).toBe("users");
    expect(modelAfter(["9"])).toEqual(modelAfter([]));
    expect(tableOf(modelAfter(["left"])).name).toBe("budgets");
    expect(tableOf(modelAfter(["2"], newModel(projectTables, { showsAll: false }))).name).toBe("budgets");
  });

  it("scroll no further than the rows", () => {
    const many = aStatus({ agents: Array.from({ length: 100 }, (_, n) => anAgent(`a${n}`)) });
    const { rows, page } = frameOf(modelAfter([]), many, {
      ...{ colors, asStarted, project: undefined, notice: undefined },
      size: { columns: 80, rows: 24 },
    });
    expect(rows).toBe(100);
    const end = lines(modelAfter(["end"]), undefined, many);
    expect(end.join("\n")).toContain("a99 ");
    expect(end.at(-2)).toBe(`rows ${100 - page + 1}–100 of 100`);
    expect(lines(modelAfter(["up", "pageup"]), undefined, many).at(-2)).toContain("rows 1–");
    expect(lines(modelAfter(["pagedown"]), undefined, many).at(-2)).toContain("rows 11–");
  });
});

describe("a frame", () => {
  it.each([
    [60, 24],
    [40, 12],
    [20, 6],
    [200, 50],
  ])("has the size of the terminal: %i × %i", (columns, rows) => {
    for (const table of ["1", "2", "3", "4", "5"])
      for (const keys of [[table], [table, "/", "x"], [table, "?"]]) {
        const frame = lines(modelAfter(keys), { columns, rows });
        expect(frame.length).toBeLessThanOrEqual(rows);
        if (columns >= 40) expect(frame.filter((line) => line.length > columns)).toEqual([]);
      }
  });

  it("shows at 60 columns the summary, each agent on a line, and the keys", () => {
    const shown = lines(modelAfter([]), { columns: 60, rows: 24 });
    expect(shown.join("\n")).toMatch(/tasks +12 queued · 3 running/);
    expect(shown.join("\n")).toMatch(/^agent +state +in flight +success/m);
    expect(shown.filter((line) => /^a\d+ /.test(line))).toHaveLength(3);
    expect(shown.at(-1)).toContain("q quit");
    expect(shown).toHaveLength(24);
  });

  it("keeps the table at its row while the summary has fewer lines", () => {
    const size = { columns: 80, rows: 24 };
    const view = { colors, asStarted, size, project: undefined, notice: undefined };
    const tabsAt = (frame: { readonly lines: readonly string[] }) =>
      frame.lines.findIndex((line) => line.includes("1 agents"));
    const model = modelAfter([]);
    const tall = frameOf(model, status, view);
    const calm = aStatus({ agents: status.agents });
    expect(tabsAt(frameOf(model, calm, view))).toBeLessThan(tabsAt(tall));
    const kept = frameOf(model, calm, { ...view, summaryMin: tall.summary });
    expect(tabsAt(kept)).toBe(tabsAt(tall));
    expect(kept.lines).toHaveLength(size.rows);
    expect(kept.summary).toBe(tall.summary);
  });

  it("marks the sorted column, names the filter, the pause, and what did not fit the answer", () => {
    const cut = {
      ...status,
      omitted: { agents: 40, queues: 0, projects: 0, users: 0, resources: 0, rates: 0 },
    };
    const text = lines(modelAfter(["s", "r", "/", "a", "return", "p"]), undefined, cut).join("\n");
    expect(text).toMatch(/^agent ▲/m);
    expect(text).toContain('rows 1–3 of 3, filter "a" hides 0, 40 more (press a), paused');
  });

  it("says why the view is old, and shows no control characters of others", () => {
    const foul = aStatus({ agents: [anAgent("a\u001b[2Jx")] });
    const text = lines(modelAfter([]), undefined, foul, "no leader\u0007").join("\n");
    expect(text).toContain("no leader\\x07");
    expect(text).not.toContain("\u001b");
  });
});
