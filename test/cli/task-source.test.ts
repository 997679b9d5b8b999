// From flags, files and standard input to tasks.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type SourcedTask, type TaskFlags, taskSource } from "../../src/cli/task-source.ts";
import { limits } from "../../src/limits.ts";
import { aShell } from "./shell.ts";

async function tasksOf(flags: TaskFlags, sources: string[] = [], shell = aShell()): Promise<SourcedTask[]> {
  return await collected(taskSource(flags, sources, shell).tasks);
}

async function collected(tasks: AsyncIterable<SourcedTask>): Promise<SourcedTask[]> {
  const list: SourcedTask[] = [];
  for await (const task of tasks) list.push(task);
  return list;
}

function aFolder(files: Record<string, string | Buffer>): string {
  const folder = mkdtempSync(join(tmpdir(), "waggle-source-"));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

describe("the trace of the environment", () => {
  const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  const shell = (TRACEPARENT: string, TRACESTATE = "vendor=1", stdin = "") =>
    aShell({ env: { TRACEPARENT, TRACESTATE }, stdin });

  it("is the task's", async () => {
    const task = { kind: "k", payload: "x", traceparent, tracestate: "vendor=1" };
    expect(await tasksOf({ kind: "k", text: "x" }, [], shell(traceparent))).toEqual([{ ok: true, task }]);
  });

  it("is every line's, unless the line has a trace", async () => {
    const own = traceparent.replace("01", "00");
    const lines = `{"kind":"k"}\n{"kind":"k","traceparent":"${own}"}\n`;
    const tasks = await tasksOf({}, ["-"], shell(traceparent, "", lines));
    expect(tasks).toEqual([
      { ok: true, task: { kind: "k", traceparent } },
      { ok: true, task: { kind: "k", traceparent: own } },
    ]);
  });

  it.each(["", "none", `00-${"0".repeat(32)}-${"b".repeat(16)}-01`])(
    "is ignored if invalid: %j",
    async (text) => {
      const task = { kind: "k", payload: "x" };
      expect(await tasksOf({ kind: "k", text: "x" }, [], shell(text))).toEqual([{ ok: true, task }]);
    },
  );
});

describe("one task", () => {
  it("has the fields of its flags, and no others", async () => {
    const deadline = new Date(1_900_000_000_000);
    expect(
      await tasksOf({ kind: "k", text: "hi", priority: 5, deadline, timeout: 2_000, project: "p" }),
    ).toEqual([
      {
        ok: true,
        task: {
          kind: "k",
          payload: "hi",
          priority: 5,
          deadline: deadline.getTime(),
          timeoutMs: 2_000,
          project: "p",
        },
      },
    ]);
    expect(await tasksOf({ kind: "k" })).toEqual([{ ok: true, task: { kind: "k" } }]);
  });

  it("has the needs, the affinity and the attributes of its flags and lines, within their bounds", async () => {
    const asked = { needs: { gpu: ["a100"] }, affinity: "s-1", attributes: { ticket: "OPS-17" } };
    const { needs: need, attributes: attribute, affinity } = asked;
    expect(await tasksOf({ kind: "k", need, affinity, attribute })).toEqual([
      { ok: true, task: { kind: "k", ...asked } },
    ]);
    const lines = [
      { kind: "k", ...asked, needs: { gpu: "a100" } },
      { kind: "k", need: { gpu: "a100" } },
      { kind: "k", needs: { gpu: [] } },
      { kind: "k", affinity: "two words" },
      { kind: "k", attributes: { a: "x".repeat(limits.attributesBytesMax) } },
    ];
    const stdin = lines.map((line) => JSON.stringify(line)).join("\n");
    const tasks = await tasksOf({}, ["-"], aShell({ stdin }));
    expect(tasks.map((one) => (one.ok ? one.task.needs : one.error.message))).toEqual([
      { gpu: "a100" },
      "standard input:2: need: is no field of a task; did you mean needs?",
      "standard input:3: needs.gpu: must be a list of at least 1, not of 0",
      "standard input:4: affinity: must be 1–128 printable characters without spaces",
      "standard input:5: attributes: must be at most 4 KiB as JSON; store more elsewhere and submit a reference",
    ]);
  });

  it("without a weight gets the weight of the model and the payload's length", async () => {
    const cwd = aFolder({ bytes: Buffer.alloc(8_000, 0xff) });
    const model = "gpt-4o";
    expect(await tasksOf({ kind: "k", model, text: "x".repeat(6_000) })).toMatchObject([
      { task: { weight: 3.75 } },
    ]);
    expect(await tasksOf({ kind: "k", model }, ["@bytes"], aShell({ cwd }))).toMatchObject([
      { task: { weight: 5 } },
    ]);
    await expect(tasksOf({ kind: "k", model, weight: 2 })).rejects.toThrow("exclude each other");
    const lines = ['{"weight":3}', '{"model":"opus"}', "{}", '{"model":"opus","weight":3}', '{"model":4}'];
    const stdin = lines.join("\n");
    expect(await tasksOf({ kind: "k", model, ndjson: true }, ["-"], aShell({ stdin }))).toEqual([
      { ok: true, task: { kind: "k", weight: 3 } },
      { ok: true, task: { kind: "k", weight: 5 } },
      { ok: true, task: { kind: "k", weight: 2.5 } },
      expect.objectContaining({ ok: false, error: expect.objectContaining({ field: "model" }) }),
      expect.objectContaining({ ok: false, error: expect.objectContaining({ field: "model" }) }),
    ]);
  });

  it("keeps JSON as it was written", async () => {
    expect(await tasksOf({ kind: "k", payload: '{ "b":1, "a":2.0 }' })).toMatchObject([
      { task: { payload: '{ "b":1, "a":2.0 }' } },
    ]);
  });

  it("takes its payload from a file or standard input, as text or as bytes", async () => {
    const cwd = aFolder({ "a.txt": "größe\n", "b.bin": Buffer.from([0xff, 0x00]), "c.json": "[1]" });
    const shell = () => aShell({ cwd, stdin: "from stdin" });
    expect(await tasksOf({ kind: "k" }, ["@a.txt"], shell())).toMatchObject([
      { task: { payload: "größe\n" } },
    ]);
    expect(await tasksOf({ kind: "k" }, ["@b.bin"], shell())).toEqual([
      { ok: true, task: { kind: "k", payload: Buffer.from([0xff, 0x00]) } },
    ]);
    expect(await tasksOf({ kind: "k" }, ["-"], shell())).toMatchObject([{ task: { payload: "from stdin" } }]);
    expect(await tasksOf({ kind: "k", payload: "@c.json" }, [], shell())).toMatchObject([
      { task: { payload: "[1]" } },
    ]);
  });

  it("becomes many with many files", async () => {
    const cwd = aFolder({ a: "1", b: "2" });
    const source = taskSource({ kind: "k" }, ["@a", "@b"], aShell({ cwd }));
    expect(source.isMany).toBe(true);
    expect(await collected(source.tasks)).toMatchObject([
      { task: { payload: "1" } },
      { task: { payload: "2" } },
    ]);
  });

  it("is refused by field when it breaks a rule of the wire", async () => {
    expect(await tasksOf({ kind: "a b" })).toMatchObject([{ ok: false, error: { field: "kind" } }]);
    const text = "x".repeat(limits.payloadBytesMax + 1);
    expect(await tasksOf({ kind: "k", text })).toMatchObject([{ ok: false, error: { field: "payload" } }]);
  });

  it("says which file cannot be read", async () => {
    await expect(tasksOf({ kind: "k" }, ["@nowhere"])).rejects.toMatchObject({
      code: "WAGGLE_USAGE",
      message: expect.stringContaining("cannot read nowhere"),
    });
    await expect(tasksOf({}, ["@nowhere"])).rejects.toMatchObject({ code: "WAGGLE_USAGE" });
  });
});

describe("NDJSON", () => {
  it("is one task a line, blank lines aside; its fields go before flags", async () => {
    const stdin =
      '{"kind":"a","user":"ann"}\n\n{"kind":"b","payload":{"x":[1]}}\r\n{"kind":"c","notBefore":"2026-11-20T18:00:00Z"}';
    expect(await tasksOf({ user: "bob", priority: 1 }, ["-"], aShell({ stdin }))).toEqual([
      { ok: true, task: { kind: "a", user: "ann", priority: 1 } },
      { ok: true, task: { kind: "b", user: "bob", priority: 1, payload: '{"x":[1]}' } },
      {
        ok: true,
        task: { kind: "c", user: "bob", priority: 1, notBefore: Date.parse("2026-11-20T18:00:00Z") },
      },
    ]);
  });

  it("--kind with --ndjson applies to lines without a kind", async () => {
    const shell = aShell({ stdin: '{"payload":"1"}\n{"kind":"b"}' });
    expect(await tasksOf({ kind: "k", ndjson: true }, ["-"], shell)).toMatchObject([
      { task: { kind: "k", payload: "1" } },
      { task: { kind: "b" } },
    ]);
  });

  it("hands on a bad line by its number, and the lines after it", async () => {
    const lines = [
      "nonsense",
      "[]",
      "{}",
      '{"kind":"k","weight":0}',
      '{"kind":"k","deadline":"soon"}',
      `{"kind":"k","payload":${"[".repeat(10_000)}${"]".repeat(10_000)}}`,
      '{"kind":"k","__proto__":{"x":1}}',
    ];
    const cwd = aFolder({ "tasks.ndjson": lines.join("\n") });
    const tasks = await tasksOf({}, ["@tasks.ndjson"], aShell({ cwd }));
    expect(tasks.map((task) => task.ok || task.error.message)).toEqual([
      expect.stringMatching(/^tasks\.ndjson:1: .*not JSON/),
      expect.stringMatching(/^tasks\.ndjson:2: is no JSON object/),
      expect.stringMatching(/^tasks\.ndjson:3: kind: /),
      expect.stringMatching(/^tasks\.ndjson:4: weight: /),
      expect.stringMatching(/^tasks\.ndjson:5: deadline: must be a time .*, not "soon"$/),
      expect.stringMatching(/^tasks\.ndjson:6: .*nested deeper/),
      expect.stringMatching(/^tasks\.ndjson:7: __proto__: is no field of a task/),
    ]);
  });

  it.each([
    ["max-attempts", "did you mean maxAttempts?"],
    ["not_before", "did you mean notBefore?"],
    ["prio", "did you mean priority?"],
    ["timeout", "did you mean timeoutMs?"],
    ["text", "did you mean payload?"],
    ["colour", "the fields are id, kind,"],
  ])("refuses the field %s, which the wire would pass over", async (field, hint) => {
    const shell = aShell({ stdin: JSON.stringify({ kind: "k", [field]: 1 }) });
    const [task] = await tasksOf({}, ["-"], shell);
    expect(task).toMatchObject({ ok: false, error: { code: "WAGGLE_INVALID_MESSAGE", field } });
    expect(task?.ok === false && task.error.message).toContain(hint);
  });

  it("refuses a line with a deadline before the beginning", async () => {
    const shell = aShell({ stdin: '{"kind":"k","deadline":"+1h","notBefore":"+2h"}' });
    expect(await tasksOf({}, ["-"], shell)).toMatchObject([{ ok: false, error: { field: "deadline" } }]);
  });

  it("turns base64 into the bytes it stands for", async () => {
    const shell = aShell({ stdin: '{"kind":"k","encoding":"base64","payload":"/wA="}' });
    expect(await tasksOf({}, ["-"], shell)).toEqual([
      { ok: true, task: { kind: "k", payload: Buffer.from([0xff, 0]) } },
    ]);
  });
});

describe("bytes that are not UTF-8", () => {
  const latin1 = (text: string) => Buffer.from(text, "latin1");

  it("are refused by file and line, and the lines beside them are taken", async () => {
    const line = (payload: string) => JSON.stringify({ kind: "k", payload });
    const content = latin1([line("a"), line("b"), line("José"), line("d")].join("\r\n"));
    const shell = aShell({ cwd: aFolder({ "names.ndjson": content }) });
    const tasks = await tasksOf({}, ["@names.ndjson"], shell);
    expect(tasks.map(({ ok }) => ok)).toEqual([true, true, false, true]);
    expect(tasks[2]).toMatchObject({ error: { message: "names.ndjson:3: not UTF-8" } });
    const piped = await tasksOf({}, ["-"], aShell({ stdin: content }));
    expect(piped[2]).toMatchObject({ error: { message: "standard input:3: not UTF-8" } });
  });

  it("are refused in the JSON of --payload", async () => {
    const shell = aShell({ cwd: aFolder({ "p.json": latin1('{\n"name": "José"}') }) });
    await expect(tasksOf({ kind: "k", payload: "@p.json" }, [], shell)).rejects.toThrow(
      "p.json:2: not UTF-8",
    );
  });

  it("are sent unchanged as the payload", async () => {
    const shell = aShell({ cwd: aFolder({ "p.txt": latin1("José") }) });
    expect(await tasksOf({ kind: "k" }, ["@p.txt"], shell)).toMatchObject([
      { ok: true, task: { payload: latin1("José") } },
    ]);
  });
});

it("payloads of several files are distinguished by the file names", async () => {
  const shell = aShell({ cwd: aFolder({ a: "1", b: "2" }) });
  const tasks = await tasksOf({ kind: "k" }, ["@a", "@b"], shell);
  expect(tasks.map(({ file }) => file)).toEqual(["a", "b"]);
});

it("a payload over the limit is refused in KiB, with what to do", async () => {
  const [task] = await tasksOf({ kind: "k", text: "x".repeat(limits.payloadBytesMax + 1) });
  expect(task).toMatchObject({
    error: {
      message: expect.stringMatching(
        /^payload: must be at most 256 KiB.*store it elsewhere and submit a reference$/,
      ),
    },
  });
});
