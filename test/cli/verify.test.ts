// `waggle verify` and `waggle export` on real files and real servers: a journal as written, and the same journal with
// one batch changed and every checksum of the storage right.

import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { VerificationReport } from "../../src/cli/verify-view.ts";
import { swarmId } from "../../src/ids.ts";
import { openFileJournal } from "../../src/journal/file.ts";
import type { Journal, JournalReader } from "../../src/journal/journal.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { openNatsJournal } from "../../src/journal/nats.ts";
import type { MemoryLedLog } from "../coordinator/compacting/led-log.ts";
import { aCompactedLog, aLongLog, copyInto, placeOf, Tampered } from "../journal/tampered.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { aShell, runIn } from "./shell.ts";

const CHANGED_IDX = 14;
const logs: [string, () => Promise<MemoryLedLog>][] = [
  ["without a base", aLongLog],
  ["with a base behind", aCompactedLog],
];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waggle-verify-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function run(...argv: string[]) {
  return await runIn(aShell({ cwd: folder, env: {} }), ...argv);
}

async function verified(
  ...argv: string[]
): Promise<{ code: number; report: VerificationReport; stderr: string }> {
  const { code, stdout, stderr } = await run("verify", "--json", ...argv);
  return { code, stderr, report: (stdout === "" ? {} : JSON.parse(stdout)) as VerificationReport };
}

/** The log with one task's kind changed. */
async function tampered(log: MemoryLedLog): Promise<JournalReader> {
  const [segment, position] = await placeOf(log, CHANGED_IDX);
  const journal = new Tampered(new MemoryJournal(log.store));
  return journal.change(segment, position, (text) => text.replace('"kind":"k"', '"kind":"K"'));
}

async function inFiles(name: string, source: JournalReader): Promise<string> {
  const path = join(folder, name);
  const journal = await openFileJournal({ folder: path });
  await copyInto(journal, source);
  await journal.close();
  return path;
}

async function writtenTo(target: Journal, source: JournalReader): Promise<void> {
  await copyInto(target, source);
  await target.close();
}

describe.each(logs)("a journal in files, %s", (name, aLog) => {
  const slug = name.replaceAll(" ", "-");

  it("is whole as written", async () => {
    const log = await aLog();
    const path = await inFiles(`whole-${slug}`, new MemoryJournal(log.store));
    const { code, report } = await verified(path);
    expect(code).toBe(0);
    expect(report).toMatchObject({ ok: true, firstIdx: 1, lastIdx: log.tail.idx, lastHash: log.tail.hash });
    expect(await run("verify", path)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^verdict +whole: every batch is as it was written$/m),
    });
  });

  it("has its changed batch named", async () => {
    const path = await inFiles(`changed-${slug}`, await tampered(await aLog()));
    const { code, report } = await verified(path);
    expect(code).toBe(7);
    expect(report).toMatchObject({
      ok: false,
      lastIdx: CHANGED_IDX - 1,
      fault: { kind: "changed", idx: CHANGED_IDX },
    });
    const { stdout } = await run("verify", path);
    expect(stdout).toMatch(/^first bad +batch 14 \(segment 2, record \d+\)$/m);
    expect(stdout).toMatch(/^next +trust batches up to 13 only/m);
  });

  it("is exported whole, and has its changed batch named in the export too", async () => {
    for (const [source, code] of [
      [new MemoryJournal((await aLog()).store), 0],
      [await tampered(await aLog()), 7],
    ] as const) {
      const path = await inFiles(`exported-${slug}-${code}`, source);
      const file = join(folder, `${slug}-${code}.ndjson`);
      expect(await run("export", path, "-o", file)).toMatchObject({ code: 0, stdout: "" });
      expect((await run("export", path)).stdout).toBe(await readFile(file, "utf8"));
      expect((await verified(file)).code).toBe(code);
      await writeFile(file, (await readFile(file)).subarray(0, 3_000));
      expect(await verified(file)).toMatchObject({
        code: 7,
        stderr: expect.stringMatching(/no JSON at byte \d+; export the journal again"/),
      });
    }
  });
});

for (const { path: binary, version } of natsServersFor("verify")) {
  describe(`nats-server ${version}`, () => {
    let server: RunningNatsServer;
    beforeAll(async () => {
      server = await startNatsServer({ binary, jetstream: true });
    });
    afterAll(() => server.stop());

    it.each(logs)("finds the changed batch of a journal in streams, %s", async (name, aLog) => {
      for (const [swarm, source, code] of [
        [`whole-${name.length}`, new MemoryJournal((await aLog()).store), 0],
        [`changed-${name.length}`, await tampered(await aLog()), 7],
      ] as const) {
        const connection = { urls: [server.url], name: "verify test" };
        await writtenTo(await openNatsJournal({ connection, swarm: swarmId(swarm) }), source);
        const found = await verified("--nats", server.url, "--swarm", swarm);
        expect(found.code, found.stderr).toBe(code);
        expect(found.report.fault?.idx).toBe(code === 0 ? undefined : CHANGED_IDX);
      }
    });

    it("says that a swarm has no journal", async () => {
      const { code, stderr } = await verified("--nats", server.url, "--swarm", "nobody");
      expect(code).toBe(2);
      expect(stderr).toMatch(/the swarm nobody has no journal/);
    });
  });
}

describe("signed heads", () => {
  it("are signed, fit later, and show a changed end", async () => {
    const log = await aLongLog();
    const whole = await inFiles("anchored", new MemoryJournal(log.store));
    const heads = join(folder, "heads.ndjson");
    const key = join(folder, "key.pem");
    const first = await verified(whole, "--anchor", heads, "--key", key);
    expect(first.report.heads).toMatchObject({ checked: 0, addedIdx: log.tail.idx });
    expect((await stat(key)).mode & 0o777).toBe(0o600);
    const second = await verified(whole, "--anchor", heads, "--key", key);
    expect(second).toMatchObject({ code: 0, report: { heads: { checked: 1 } } });
    expect(second.report.heads?.addedIdx).toBeUndefined();

    const [segment, position] = await placeOf(log, log.tail.idx);
    const end = new Tampered(new MemoryJournal(log.store)).change(segment, position, (text) =>
      text.replace('"kind":"k"', '"kind":"K"'),
    );
    const changed = await inFiles("changed-end", end);
    expect((await verified(changed)).code).toBe(0); // no successor shows it
    const found = await verified(changed, "--anchor", heads, "--key", key);
    expect(found.code).toBe(7);
    expect(found.report.heads?.wrong).toMatch(/names another hash/);
    expect((await readFile(heads, "utf8")).trim().split("\n")).toHaveLength(1);
  });

  it("changed, or signed with a different key, are refused", async () => {
    const log = await aLongLog();
    const whole = await inFiles("anchored-2", new MemoryJournal(log.store));
    const heads = join(folder, "heads-2.ndjson");
    await verified(whole, "--anchor", heads, "--key", join(folder, "one.pem"));
    const other = await verified(whole, "--anchor", heads, "--key", join(folder, "other.pem"));
    expect(other).toMatchObject({ code: 7, report: { ok: false } });
    expect(other.report.heads?.wrong).toMatch(/was signed with the key \S+, not with \S+/);
    await writeFile(heads, (await readFile(heads, "utf8")).replace(/"at":\d+/, '"at":1'));
    const { code, report } = await verified(whole, "--anchor", heads);
    expect(code).toBe(7);
    expect(report.heads?.wrong).toMatch(/no valid signature/);
  });

  it.each<[string, readonly string[], RegExp]>([
    ["a key without a file of heads", ["--key", "one.pem"], /name their file with --anchor/],
    [
      "a file of heads that does not exist, without a key",
      ["--anchor", "none.ndjson"],
      /cannot read \S*none.ndjson/,
    ],
    [
      "a file that holds no heads",
      ["--anchor", "no-heads.txt"],
      /line 1 of \S*no-heads.txt: it is no signed head: name the file that .*--anchor/,
    ],
    [
      "a key that is no key",
      ["--anchor", "h.ndjson", "--key", "no-heads.txt"],
      /no-heads.txt: the key is no PEM .*: name the file of such a key/,
    ],
    ["a folder without a journal", ["."], /no journal in/],
    ["a file that is no export", ["no-heads.txt"], /is no export of a journal/],
    ["a path that does not exist", ["nothing-here"], /cannot read \S*nothing-here/],
  ])("refuse %s", async (_, argv, message) => {
    await writeFile(join(folder, "no-heads.txt"), "hello\n");
    const { code, stderr } = await run("verify", ...argv);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});
