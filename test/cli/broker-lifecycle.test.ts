// The broker that `waggle up` starts: lifecycle, journal and secret. The development broker, and nats-server.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { segmentPath } from "../../src/journal/file/reader.ts";
import { natsServersFor } from "../support/nats-server.ts";
import { asHinted, type Finished, Workplace } from "../support/waggle-process.ts";

const records = ({ stdout }: Finished): Record<string, unknown>[] =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

const brokers: readonly { name: string; binary: string | undefined }[] = [
  { name: "the development broker", binary: undefined },
  ...natsServersFor("the life of a broker")
    .slice(0, 1)
    .map(({ path, version }) => ({ name: `nats-server ${version}`, binary: path })),
];

describe("the life of a broker", () => {
  let workplace: Workplace;
  afterEach(() => workplace.clear());

  it("outlives its coordinator, and ends with down, which lists the remaining processes", async () => {
    workplace = await Workplace.make();
    const up = workplace.start("up", "--json");
    await up.says('"msg":"leading"');
    const said = records({ code: 0, stdout: up.said, stderr: "" });
    const [broker, journal] = said.filter((record) => "type" in record);
    expect(said).toContainEqual(
      expect.objectContaining({ msg: expect.stringContaining("a new one begins") }),
    );
    expect(broker).toMatchObject({ type: "broker", kind: "development", wasStarted: true });
    expect(journal).toMatchObject({ type: "journal", durability: "file" });

    const down = await workplace.run("down");
    expect(down).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^stopped the development broker at /),
    });
    expect(down.stderr).toMatch(/^the coordinator \S+ still runs and waits for a broker/);
    expect(await workplace.runVerb("status")).toMatchObject({ code: 3 });
    const ended = await up.kill("SIGINT");
    expect(ended.stdout).toContain("ending (Ctrl-C");
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining("the coordinator has ended") });
    expect(ended.stdout).not.toContain("the broker runs");
  });

  it.each(brokers)("is restarted by its coordinator after a kill: $name", async ({ binary }) => {
    workplace = await Workplace.make(binary);
    const up = workplace.start("up");
    await up.says("leading");
    expect(await workplace.runVerb("submit", "--kind", "echo", "--id", "A-1")).toMatchObject({ code: 0 });
    const { pid } = JSON.parse(await readFile(join(workplace.dataFolder, "broker.json"), "utf8")) as {
      pid: number;
    };
    process.kill(pid, "SIGKILL");
    await up.says(`the broker had ended (process ${pid}): started again at `);
    await up.says("connected again to the server");
    expect(await workplace.runVerb("task", "A-1")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("queued"),
    });
    expect(await workplace.run("down")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^stopped /),
    });
    await up.says(`the broker was stopped with ${asHinted("down")}`);
    expect(await workplace.runVerb("status")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining(`was stopped: ${asHinted("up")} starts it again`),
    });
  });

  it("doctor does not advise to start a coordinator on a damaged journal in files", async () => {
    workplace = await Workplace.make();
    const up = workplace.start("up");
    await up.says("leading");
    for (const id of ["A-1", "A-2"]) await workplace.runVerb("submit", "--kind", "echo", "--id", id);
    await up.kill("SIGKILL");
    const path = segmentPath(join(workplace.dataFolder, "journals", "default"), 1);
    const bytes = await readFile(path);
    bytes[bytes.indexOf("A-1")] = 0x42;
    await writeFile(path, bytes);
    const { code, stdout } = await workplace.runVerb("doctor");
    expect(code).toBe(7);
    expect(stdout).toMatch(/^fail +journal .*record \d+ of segment 1 cannot be read: .* damaged at byte/m);
    expect(stdout).toMatch(
      /^fail +leader +no coordinator leads the swarm default\n.*first fix the journal problem/m,
    );
    expect(stdout).not.toContain("waggle up");
  });

  it("that a folder is in the place of a segment's file is refused by the file's name", async () => {
    workplace = await Workplace.make();
    const path = segmentPath(join(workplace.dataFolder, "journals", "default"), 1);
    await mkdir(path, { recursive: true });
    const { code, stderr } = await workplace.run("up");
    expect(code).toBe(3);
    expect(stderr).toMatch(/^error WAGGLE_UNREACHABLE: the journal's disk failed \(EISDIR.*records\.log'\)/m);
    const doctor = await workplace.runVerb("doctor");
    expect(doctor.code).toBe(3);
    expect(doctor.stdout).toMatch(/^fail +journal .*EISDIR/m);
  });

  it("keeps the secret out of everything that is printed", async () => {
    workplace = await Workplace.make();
    const up = workplace.start("up", "--verbose");
    await up.says("leading");
    const { secret } = JSON.parse(await readFile(join(workplace.dataFolder, "broker.json"), "utf8")) as {
      secret: string;
    };
    const said = [
      up.said,
      ...(await Promise.all(
        ["status", "doctor"].map(async (verb) => Object.values(await workplace.runVerb(verb, "--verbose"))),
      )),
    ];
    expect(secret.length).toBeGreaterThan(10);
    expect(said.flat().join("\n")).not.toContain(secret);
  });
});

describe.each(natsServersFor("the command line on JetStream").slice(0, 1))(
  "JetStream $version",
  ({ path }) => {
    let workplace: Workplace;
    afterEach(() => workplace.clear());

    it("has a second up stand by and take over, and doctor reads the settings of its streams back", async () => {
      workplace = await Workplace.make(path);
      const first = workplace.start("up", "--name", "north");
      await first.says("leading");
      expect(first.said).toMatch(/^broker +nats-server [\d.]+ with JetStream/m);
      const second = workplace.start("up", "--name", "north");
      await second.says("standing by: coordinator north-");
      expect(second.said).toMatch(/standing by: coordinator north-[a-z0-9]{4} leads, term 1"/);
      const [one, other] = [first, second].map(
        ({ said }) => /^coordinator (north-[a-z0-9]{4}) of the swarm default$/m.exec(said)?.[1],
      );
      expect(records(await workplace.runVerb("status", "--json"))).toMatchObject([
        { leader: one, standbys: [other] },
      ]);
      expect(one).not.toBe(other);

      const checks = records(await workplace.runVerb("doctor", "--json"));
      expect(checks.find(({ name }) => name === "streams")).toMatchObject({
        status: "ok",
        found: expect.stringContaining("read back"),
      });
      expect(checks.filter(({ status }) => status !== "ok")).toEqual([]);

      expect(await first.kill("SIGINT")).toMatchObject({
        code: 0,
        stderr: expect.stringContaining("the broker runs"),
      });
      await second.says("leading");
      expect(await workplace.runVerb("status")).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^leader .*, term 2$/m),
      });
    });

    it("says what replicas need", async () => {
      workplace = await Workplace.make(path);
      const refused = await workplace.run("up", "--replicas", "3");
      expect(refused.code).toBe(2);
      expect(refused.stderr).toMatch(
        /^error WAGGLE_INVALID_CONFIG: --replicas: (this NATS server is not in a cluster|nats-server 2\.9\.\d+ may lose).*leave --replicas out/m,
      );
      expect(refused.stderr).not.toContain("bytes");
      // `up` has stopped the broker that it started.
      expect(await workplace.run("down")).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/no broker/),
      });
    });

    it("loses the server: the leader announces the hand-over, and ends at the second Ctrl-C", async () => {
      workplace = await Workplace.make(path);
      const up = workplace.start("up");
      await up.says("leading");
      await workplace.run("down");
      await up.says(`the broker was stopped with ${asHinted("down")}`);
      up.child.kill("SIGINT");
      await up.says("ending (Ctrl-C again ends the coordinator at once)");
      expect(await up.kill("SIGINT")).toMatchObject({ code: 130 });
    });
  },
);
