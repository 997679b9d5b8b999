// Tables, numbers and streams: what reaches a terminal or a pipe.

import { describe, expect, it } from "vitest";
import { formatBytes, labelled } from "../../src/cli/format.ts";
import { Output, printable } from "../../src/cli/output.ts";
import { fitWidths, renderTable, textWidth } from "../../src/cli/table.ts";
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

  it("takes the excess from the widest column", () => {
    expect(fitWidths([5, 30, 5], 30)).toEqual([5, 16, 5]);
    expect(fitWidths([5, 30, 5], undefined)).toEqual([5, 30, 5]);
    expect(fitWidths([20, 20], 1)).toEqual([4, 4]);
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
