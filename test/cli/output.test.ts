// Tables, numbers and streams: the output on a terminal or a pipe.

import { describe, expect, it } from "vitest";
import { brokenAt, formatBytes, formatTime, hanging, labelled } from "../../src/cli/format.ts";
import { Output, printable } from "../../src/cli/output.ts";
import { type Column, renderTable, textWidth } from "../../src/cli/table.ts";
import { aShell } from "./shell.ts";

const columns = [{ head: "name" }, { head: "n", align: "right" as const }, { head: "text" }];

describe("a table", () => {
  it("is whole in a pipe", () => {
    const output = new Output(aShell(), { json: false });
    const text = "a long text ".repeat(20).trim();
    expect(
      renderTable(output, columns, [
        ["one", 1, text],
        ["b", 20, ""],
      ]),
    ).toBe(`name   n  text\none    1  ${text}\nb     20`);
  });

  it.each([20, 40, 80, 200])("fits a terminal of %i columns", (width) => {
    const output = new Output(aShell({ columns: width, env: { NO_COLOR: "1" } }), { json: false });
    const rows = [
      ["short", 1, "a long text ".repeat(20)],
      ["数据数据数据数据数据数据", 20, "größe"],
    ];
    for (const line of renderTable(output, columns, rows).split("\n"))
      expect(textWidth(line)).toBeLessThanOrEqual(width);
  });

  it("fits the usual width where the terminal's was never set", () => {
    const output = new Output(aShell({ columns: 0 }), { json: false });
    expect([output.columns, output.noteColumns]).toEqual([80, 80]);
  });

  const at = (width: number, heads: readonly Column[], ...rows: (string | number)[][]) => {
    const output = new Output(aShell({ columns: width, env: { NO_COLOR: "1" } }), { json: false });
    return renderTable(output, heads, rows);
  };

  it("takes the excess from the widest column, and from a head last", () => {
    const heads = [{ head: "a" }, { head: "description" }, { head: "c" }];
    expect(at(30, heads, ["12345", "x y ".repeat(9), "12345"])).toBe(
      "a      description       c\n12345  x y x y x y x y…  12345",
    );
    expect(at(24, heads, ["123456789", "x y ".repeat(9), "1"])).toBe(
      "a         description  c\n1234…789  x y x y x …  1",
    );
  });

  it("cuts a name in its middle and a sentence at its end", () => {
    expect(at(14, [{ head: "kind" }], ["acme.team-17.step-657"])).toBe("kind\nacme.te…ep-657");
    expect(at(14, [{ head: "text" }], ["a sentence of several words"])).toBe("text\na sentence of…");
  });

  it("leaves out optional columns, the last first, and keeps ids whole", () => {
    const heads: Column[] = [
      { head: "id", whenNarrow: "whole" },
      { head: "kind" },
      { head: "user", whenNarrow: "drop" },
      { head: "agent", whenNarrow: "drop" },
    ];
    const row = ["nhvcoykmjtfh-3te", "acme.team-17.document-step-657", "ann@example.org", "reviewer-1"];
    expect(at(120, heads, row).split("\n")[0]).toMatch(/^id +kind +user +agent$/);
    expect(at(60, heads, row)).toBe(
      "id                kind                       user\n" +
        "nhvcoykmjtfh-3te  acme.team-17…ent-step-657  ann@example.org",
    );
    expect(at(40, heads, row)).toMatch(/^id +kind\nnhvcoykmjtfh-3te {2}acme\S+…\S+657$/);
    expect(at(16, heads, row)).toContain("nhvcoykmjtfh-3te");
  });

  it("puts below a row what does not fit beside it, broken between words", () => {
    const heads: Column[] = [{ head: "agent" }, { head: "kinds", whenNarrow: "below" }];
    const rows = [
      ["a1", "review (90 %), summarise (80 %), translate (70 %)"],
      ["a2", ""],
    ];
    expect(at(60, heads, ...rows)).toBe(
      "agent  kinds\na1     review (90 %), summarise (80 %), translate (70 %)\na2",
    );
    expect(at(30, heads, ...rows)).toBe(
      "agent\na1\n    review (90 %), summarise\n    (80 %), translate (70 %)\na2",
    );
  });

  it("shows control characters instead of obeying them", () => {
    const output = new Output(aShell(), { json: false });
    expect(renderTable(output, [{ head: "x" }], [["a\u001b[31mb\nc"]])).toBe("x\na\\x1b[31mb\\nc");
    expect(printable("a\u0007\u009b\u2028b\tc")).toBe("a\\x07\\x9b\\x2028b\\tc");
  });
});

describe("output", () => {
  it("is text for people and records for programs, both on stdout", () => {
    const people = aShell();
    new Output(people, { json: false }).datum({ a: 1 }, () => "text");
    const programs = aShell();
    new Output(programs, { json: true }).datum({ a: 1 }, () => "text");
    expect([people.stdout.text, programs.stdout.text]).toEqual(["text\n", '{"a":1}\n']);
    expect([people.stderr.text, programs.stderr.text]).toEqual(["", ""]);
  });

  it("gives a result one line end, and bytes none", () => {
    const shell = aShell();
    const output = new Output(shell, { json: false });
    output.raw("a");
    output.raw("b\n");
    output.raw(Buffer.from([0x63, 0xff]));
    expect(shell.stdout.text).toBe("a\nb\nc\xff");
  });

  it("falls silent when its reader is gone", () => {
    const shell = aShell();
    const output = new Output(shell, { json: false });
    shell.stdout.fail("EPIPE");
    output.datum({}, () => "lost");
    expect(output.closed.aborted).toBe(true);
    expect(shell.stdout.text).toBe("");
    expect(output.failure).toBeUndefined();
  });

  it("keeps why data were lost when the stream failed", () => {
    const shell = aShell();
    const output = new Output(shell, { json: false });
    shell.stdout.fail("ENOSPC");
    expect(output.closed.aborted).toBe(true);
    expect(output.failure).toMatchObject({ code: "ENOSPC" });
  });

  it("shows a terminal the control characters of a result, and a pipe the result", () => {
    const terminal = aShell({ columns: 80 });
    new Output(terminal, { json: false }).raw("a\u001b[2J\n\tb\r\n");
    expect(terminal.stdout.text).toBe("a\\x1b[2J\n\tb\\x0d\n");
    const pipe = aShell();
    new Output(pipe, { json: false }).raw("a\u001b[2J\n\tb\r\n");
    expect(pipe.stdout.text).toBe("a\u001b[2J\n\tb\r\n");
  });

  it("clears a line it had drawn before it prints the next", () => {
    const shell = aShell({ columns: 80 });
    const output = new Output(shell, { json: false });
    output.redraw("1 of 2");
    output.redraw("2 of 2");
    output.note("done");
    expect(shell.stderr.text).toBe("1 of 2\r\u001b[2K2 of 2\r\u001b[2Kdone\n");
  });
});

it("breaks a labelled paragraph between words", () => {
  expect(labelled("broker", "NATS at 127.0.0.1:4222", 30)).toBe(
    "broker      NATS at\n            127.0.0.1:4222",
  );
  expect(labelled("broker", "NATS at 127.0.0.1:4222", undefined)).toBe("broker      NATS at 127.0.0.1:4222");
});

it("writes sizes with their unit", () => {
  expect([0, 1_023, 1_024, 1_572_864, 10 * 1024 ** 3].map(formatBytes)).toEqual([
    "0 B",
    "1023 B",
    "1.0 KiB",
    "1.5 MiB",
    "10.0 GiB",
  ]);
});

describe("a time", () => {
  const now = new Date(2026, 10, 26, 14, 30).getTime();

  it("of today has no date", () => {
    expect(formatTime(new Date(2026, 10, 26, 0, 0, 0, 5).getTime(), now)).toBe("00:00:00.005");
    expect(formatTime(new Date(2026, 10, 26, 23, 59, 59, 999).getTime(), now)).toBe("23:59:59.999");
  });

  it.each([
    ["yesterday", [2026, 10, 25, 23, 59], "2026-11-25 23:59:00.000"],
    ["tomorrow", [2026, 10, 27, 0, 0], "2026-11-27 00:00:00.000"],
    ["the same day of another month", [2026, 0, 26, 14, 30], "2026-01-26 14:30:00.000"],
    ["the same day of another year", [2025, 10, 26, 14, 30], "2025-11-26 14:30:00.000"],
  ] as const)("of %s has its date", (_, [year, month, day, hours, minutes], shown) => {
    expect(formatTime(new Date(year, month, day, hours, minutes).getTime(), now)).toBe(shown);
  });
});

describe("text at the end of a line", () => {
  it("is not broken between a number and the counted noun", () => {
    expect(brokenAt("3,000 queued · 12 running · 40 ms", 16)).toEqual([
      "3,000 queued ·",
      "12 running ·",
      "40 ms",
    ]);
  });

  it("continues indented", () => {
    expect(hanging("14:30:00.000 12 t1 failed at a1: no such file", 24)).toEqual([
      "14:30:00.000 12 t1",
      "    failed at a1: no",
      "    such file",
    ]);
    expect(hanging("short", 24)).toEqual(["short"]);
    expect(hanging("any length ".repeat(9).trim(), undefined)).toHaveLength(1);
  });
});
