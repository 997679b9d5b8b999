// The journal on three nats-servers with three replicas of each segment. The leader of a segment's stream is killed: no
// record is lost or doubled, and a seal holds.

import { setTimeout as delay } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { swarmId } from "../../src/ids.ts";
import type { Journal, Segment } from "../../src/journal/journal.ts";
import { inspectNatsStreams, openNatsJournal } from "../../src/journal/nats.ts";
import {
  type Replica,
  type ServerMember,
  type Servers,
  startReadyServers,
  untilCurrent,
} from "../chaos/servers.ts";
import { within } from "../chaos/within.ts";
import { replicatingServersFor } from "../support/nats-server.ts";
import { bytesOf, Follower, filled, linesOf, range } from "./records.ts";
import { appendSurely, surely } from "./stream-repeats.ts";

const [binary] = replicatingServersFor("the journal on three servers");
const SLOW_TEST_MS = 240_000;
const POLL = { timeout: 30_000, interval: 200 };
const RECORDS = 40;

interface ClusterAnswer {
  readonly cluster?: {
    readonly leader?: string;
    readonly replicas?: readonly Replica[];
  };
}

describe.skipIf(binary === undefined)(`three replicas of nats-server ${binary?.version}`, () => {
  let servers: Servers;
  let journal: Journal;
  const swarm = swarmId("cluster");
  const optionsFor = ({ urls }: Pick<Servers, "urls">) => ({
    connection: { urls, name: "journal test" },
    swarm,
    replicas: 3,
  });

  beforeAll(async () => {
    servers = await startReadyServers(binary?.path ?? "");
    journal = await openNatsJournal(optionsFor(servers));
  }, SLOW_TEST_MS);

  afterAll(async () => {
    await journal?.close();
    await servers?.stop();
  });

  /** A request of the JetStream API about a segment's stream. */
  async function ask(verb: string, number: number): Promise<ClusterAnswer> {
    const connection = await connect({ servers: [...servers.urls], timeout: 2_000 });
    try {
      const subject = `$JS.API.STREAM.${verb}.WAGGLE_${swarm}_${number}`;
      return (await connection.request(subject, "", { timeout: 2_000 })).json<ClusterAnswer>();
    } catch {
      return {}; // the servers elect a leader
    } finally {
      await connection.close();
    }
  }

  async function leaderNow(number: number): Promise<ServerMember | undefined> {
    const name = (await ask("INFO", number)).cluster?.leader;
    return servers.members.find((member) => member.name === name);
  }

  async function leaderOf(number: number): Promise<ServerMember> {
    let leader: ServerMember | undefined;
    const poll = { ...POLL, message: `the stream of segment ${number} has a leader` };
    await expect
      .poll(async () => {
        leader = await leaderNow(number);
        return leader;
      }, poll)
      .toBeDefined();
    return leader as ServerMember;
  }

  /** A leader cannot choose the successor when stepping down: each step has an even chance. */
  async function letLead(number: number, server: ServerMember): Promise<void> {
    const poll = { ...POLL, message: `${server.name} leads the stream of segment ${number}` };
    const step = async () => {
      const leader = await leaderNow(number);
      if (leader !== undefined && leader !== server) await ask("LEADER.STEPDOWN", number);
      return leader?.name;
    };
    await expect.poll(step, poll).toBe(server.name);
  }

  /** Resolves when all servers have the stream of the segment: then two of them can go on without the third. */
  async function untilReplicated(number: number): Promise<void> {
    await untilCurrent(servers, async () => (await ask("INFO", number)).cluster?.replicas ?? []);
  }

  /** Kills the leader of the stream and restarts the server after `awayMs`. */
  async function loseLeader(number: number, awayMs: number): Promise<void> {
    await untilReplicated(number);
    const leader = await leaderOf(number);
    await leader.kill("SIGKILL");
    await delay(awayMs);
    await leader.restart();
  }

  async function appendAll(segment: Segment, from: number, to: number): Promise<void> {
    for (const position of range(from, to)) {
      const outcome = await appendSurely(segment, bytesOf(`record ${position}`), position - 1);
      expect(outcome).toEqual({ kind: "stored" });
    }
  }

  it("is replicated, and says so", async () => {
    expect(journal.durability.class).toBe("replicated");
    await journal.create(1);
    const { segments } = await inspectNatsStreams(optionsFor(servers));
    expect(segments).toMatchObject([{ number: 1, kind: "there", report: { config: { num_replicas: 3 } } }]);
    await journal.remove(1);
  });

  it(
    "keeps every record when the stream's leader is lost under appends",
    async () => {
      await surely(() => journal.create(2));
      const segment = journal.segment(2);
      const follower = new Follower(segment);
      await appendAll(segment, 1, RECORDS);
      const losing = loseLeader(2, 500);
      await appendAll(segment, RECORDS + 1, 3 * RECORDS);
      await losing;
      expect(await surely(() => segment.seal())).toBe(true);
      expect(await surely(() => segment.end())).toMatchObject({ position: 3 * RECORDS, missing: 0 });
      await within(POLL.timeout, "the follower reads to the seal", follower.ended);
      expect(follower.lines).toEqual(filled(1, 3 * RECORDS));
    },
    SLOW_TEST_MS,
  );

  it(
    "seals once for all when the stream's leader is lost under the seal, with a rival that appends",
    async () => {
      for (const [at, number] of [3, 4, 5].entries()) {
        await surely(() => journal.create(number));
        const segment = journal.segment(number);
        await appendAll(segment, 1, 5);
        const rival = await openNatsJournal(optionsFor(servers));
        const writing = writeUntilSealed(rival.segment(number), 5);
        const losing = loseLeader(number, 200);
        await delay(at * 20);
        expect(await surely(() => segment.seal())).toBe(true);
        const end = await surely(() => segment.end());
        expect(end).toMatchObject({ isSealed: true, missing: 0 });
        const stored = await within(POLL.timeout, "the rival meets the seal", writing);
        await losing;
        await rival.close();
        expect(end?.position).toBeGreaterThanOrEqual(stored);
        await loseLeader(number, 200);
        expect(await appendSurely(segment, bytesOf("late"), end?.position ?? 0)).toEqual({ kind: "sealed" });
        expect(await surely(() => segment.end())).toEqual(end);
      }
    },
    SLOW_TEST_MS,
  );

  it(
    "gives a server absent during appends and the seal all records, even if the server leads later",
    async () => {
      await surely(() => journal.create(6));
      const segment = journal.segment(6);
      await appendAll(segment, 1, 10);
      await untilReplicated(6);
      const leader = await leaderOf(6);
      const away = servers.members.find((member) => member !== leader) ?? expect.fail("one server");
      await away.kill("SIGKILL");
      await appendAll(segment, 11, 30);
      expect(await surely(() => segment.seal())).toBe(true);
      await away.restart();
      await untilReplicated(6);
      await letLead(6, away);
      const reader = await openNatsJournal(optionsFor(servers));
      expect(await surely(() => reader.segment(6).end())).toMatchObject({
        position: 30,
        isSealed: true,
        missing: 0,
      });
      expect(await linesOf(reader.segment(6).replay(1))).toEqual(filled(1, 30));
      expect(await appendSurely(reader.segment(6), bytesOf("late"), 30)).toEqual({ kind: "sealed" });
      await reader.close();
    },
    SLOW_TEST_MS,
  );
});

/** The last position that was acknowledged. */
async function writeUntilSealed(segment: Segment, from: number): Promise<number> {
  for (let end = from; ; end += 1) {
    const outcome = await appendSurely(segment, bytesOf(`record ${end + 1}`), end);
    if (outcome.kind === "sealed") return end;
    expect(outcome).toEqual({ kind: "stored" });
  }
}
