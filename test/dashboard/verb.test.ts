// `waggle dashboard`, and the dashboard of `waggle up`, as processes: flags, ports, and their ends.

import { readFile, stat } from "node:fs/promises";
import { get } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type RunningWaggle, Workplace } from "../support/waggle-process.ts";

let workplace: Workplace;
beforeEach(async () => {
  workplace = await Workplace.make();
});
afterEach(() => workplace.clear());

const URL_TEXT = /http:\/\/\S+\/enter\/([\w-]+)/;

async function urlOf(running: RunningWaggle): Promise<URL> {
  await running.says(URL_TEXT);
  return new URL((URL_TEXT.exec(running.said) ?? [])[0] ?? "");
}

/** Status of a request without a cookie; undefined when nobody listens. */
async function statusAt(url: URL): Promise<number | undefined> {
  return await new Promise((resolve) => {
    get(url, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on("error", () => resolve(undefined));
  });
}

describe("waggle up", () => {
  it("serves a page at 127.0.0.1, prints its URL, and takes the page along at its end", async () => {
    const up = workplace.start("up", "--dashboard");
    const url = await urlOf(up);
    expect(up.said).toMatch(/^dashboard +http:\/\/127\.0\.0\.1:\d+\/enter\/[a-z0-9]{32}$/m);
    expect(await statusAt(url)).toBe(303);
    expect(await statusAt(new URL("/api/overview", url))).toBe(401);
    expect((await up.kill("SIGINT")).code).toBe(0);
    await expect.poll(() => statusAt(url), { timeout: 10_000 }).toBeUndefined();
  });

  it("keeps a token readable only to the owner, so a browser stays signed in over a restart", async () => {
    const up = workplace.start("up", "--dashboard");
    const first = await urlOf(up);
    const file = join(workplace.dataFolder, "dashboard-token");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(first.pathname).toBe(`/enter/${(await readFile(file, "utf8")).trim()}`);
    await up.kill("SIGINT");
    const other = await urlOf(workplace.start("up", "--dashboard"));
    expect(other.pathname).toBe(first.pathname);
    const own = await urlOf(workplace.start("dashboard", "--port", "0"));
    expect(own.pathname).not.toBe(first.pathname);
  });

  it("killed, leaves no dashboard behind", async () => {
    const up = workplace.start("up", "--dashboard", "--json");
    const url = await urlOf(up);
    await up.kill("SIGKILL");
    await expect.poll(() => statusAt(url), { timeout: 10_000 }).toBeUndefined();
  });

  it("says why its dashboard could not start, and leads on", async () => {
    const up = workplace.start("up", "--dashboard", "--operator-config", "absent.json");
    await up.says(
      /the dashboard has ended \(.*absent\.json: there is no such file\); the coordinator goes on/,
    );
    await up.says("leading");
    expect((await up.kill("SIGINT")).code).toBe(0);
  });

  it("with --no-dashboard serves none", async () => {
    const up = workplace.start("up");
    await up.says("leading");
    expect(up.said).not.toContain("dashboard");
  });
});

describe("waggle dashboard", () => {
  it("without a broker says how to start one", async () => {
    const { code, stderr } = await workplace.run("dashboard");
    expect(code).toBe(3);
    expect(stderr).toContain("no broker runs");
  });

  it.each([
    [["--host", "0.0.0.0"], "choose a secret for its URL with --token"],
    [["--host", "192.168.0.1", "--token", "short"], "at least 16 characters"],
    [["--token", "sixteen characters!"], "of A–Z a–z 0–9 _ -"],
    [["--port", "70000"], "whole number from 0 to 65535"],
    [["--port", "x"], "whole number"],
    [["--read"], "unknown option"],
  ])("%j is a mistake that is explained", async (flags, message) => {
    const { code, stderr, stdout } = await workplace.run("dashboard", ...flags);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stdout).toBe("");
  });

  it("outlives the leader, moves to a free port, and refuses a port that is taken", async () => {
    const up = workplace.start("up");
    await up.says("leading");
    const first = workplace.start("dashboard", "--token", "a-token-of-sixteen-characters");
    const url = await urlOf(first);
    expect(url.pathname).toBe("/enter/a-token-of-sixteen-characters");
    const second = await urlOf(workplace.start("dashboard", "--read-only", "--json"));
    expect(second.port).not.toBe(url.port);
    const taken = await workplace.run("dashboard", "--port", url.port);
    expect(taken.code).toBe(3);
    expect(taken.stderr).toContain(`port ${url.port} is taken`);
    await up.kill("SIGKILL");
    expect(await statusAt(url)).toBe(303);
    expect((await first.kill("SIGTERM")).code).toBe(0);
  });

  it("open to other machines warns, and takes a token from the environment", async () => {
    const open = await Workplace.make(undefined, { WAGGLE_DASHBOARD_TOKEN: "from-the-environment-1" });
    try {
      await open.start("up").says("leading");
      const running = open.start("dashboard", "--host", "0.0.0.0", "--port", "0");
      const url = await urlOf(running);
      expect(url.pathname).toBe("/enter/from-the-environment-1");
      await running.says("without encryption");
      expect(await statusAt(new URL(url.pathname, `http://127.0.0.1:${url.port}`))).toBe(303);
    } finally {
      await open.clear();
    }
  });
});
