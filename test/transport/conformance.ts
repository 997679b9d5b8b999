// The conformance suite of transports: runs against the in-process hub, the development broker and each
// nats-server found.

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { InvalidMessageError, UnreachableError } from "../../src/errors.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { bytesOf, Received, statusOf, textOf } from "./received.ts";

/** A server for a suite, with default max payload. */
export interface TransportServer {
  connect(): Promise<Transport>;
  /** Breaks every connection, and refuses new connections. */
  cut(): Promise<void>;
  /** The server is back at its address. */
  heal(): Promise<void>;
  stop(): Promise<void>;
}

const WAIT = { timeoutMs: 10_000 };

export function describeTransport(name: string, makeServer: () => Promise<TransportServer>): void {
  describe(`transport: ${name}`, () => {
    let server: TransportServer;
    let opened: Transport[] = [];

    const connect = async (): Promise<Transport> => {
      const transport = await server.connect();
      opened.push(transport);
      return transport;
    };
    /** Two connections, the usual case: a listener and a speaker. */
    const connectTwo = async () => ({ listener: await connect(), speaker: await connect() });
    const listen = async (transport: Transport, subject: string, queue?: string) => {
      const received = new Received(transport, subject, queue === undefined ? {} : { queue });
      await transport.flush();
      return received;
    };
    const answer = async (transport: Transport, subject: string, reply: (text: string) => string) => {
      transport.subscribe(subject, (message) => {
        if (message.reply !== undefined)
          transport.publish(message.reply, bytesOf(reply(textOf(message.data))));
      });
      await transport.flush();
    };

    beforeAll(async () => {
      server = await makeServer();
    });
    afterEach(async () => {
      await Promise.all(opened.map((transport) => transport.close()));
      opened = [];
    });
    afterAll(async () => {
      await server.stop();
    });

    describe("publish and subscribe", () => {
      it("delivers every message in the order of publishing", async () => {
        const { listener, speaker } = await connectTwo();
        const received = await listen(listener, "order");
        const sent = Array.from({ length: 2_000 }, (_, at) => `message ${at}`);
        for (const text of sent) speaker.publish("order", bytesOf(text));
        await received.count(sent.length);
        expect(received.texts()).toEqual(sent);
      });

      it("passes bytes through untouched, none included", async () => {
        const { listener, speaker } = await connectTwo();
        const received = await listen(listener, "bytes");
        const everyByte = Uint8Array.from({ length: 256 }, (_, at) => at);
        for (const data of [everyByte, new Uint8Array(0), bytesOf("PUB x 1\r\n\r\n")])
          speaker.publish("bytes", data);
        await received.count(3);
        expect(received.messages.map(({ data }) => [...data])).toEqual([
          [...everyByte],
          [],
          [...bytesOf("PUB x 1\r\n\r\n")],
        ]);
      });

      it("gives the subject and the reply subject, and undefined where there is none", async () => {
        const { listener, speaker } = await connectTwo();
        const received = await listen(listener, "who.*");
        speaker.publish("who.a", bytesOf("1"));
        speaker.publish("who.b", bytesOf("2"), "answer.here");
        await received.count(2);
        expect(received.messages.map(({ subject, reply }) => ({ subject, reply }))).toEqual([
          { subject: "who.a", reply: undefined },
          { subject: "who.b", reply: "answer.here" },
        ]);
      });

      it.each([
        ["a.b", ["a.b"]],
        ["a.*", ["a.b", "a.c"]],
        ["*.b", ["a.b"]],
        ["a.>", ["a.b", "a.c", "a.b.c"]],
        ["a.*.c", ["a.b.c"]],
        [">", ["a", "a.b", "a.c", "a.b.c"]],
        ["*.*", ["a.b", "a.c"]],
      ])("%s receives %j", async (pattern, wanted) => {
        const { listener, speaker } = await connectTwo();
        const received = await listen(listener, `wild.${pattern}`);
        const end = await listen(listener, "wild-end");
        for (const subject of ["a", "a.b", "a.c", "a.b.c"]) speaker.publish(`wild.${subject}`, bytesOf(""));
        speaker.publish("wild-end", bytesOf(""));
        await end.count(1);
        expect(received.subjects()).toEqual(wanted.map((subject) => `wild.${subject}`));
      });

      it("delivers one copy to each of several matching subscriptions, the publisher's own included", async () => {
        const { listener, speaker } = await connectTwo();
        const all = [
          await listen(listener, "many.x"),
          await listen(listener, "many.x"),
          await listen(listener, "many.*"),
          await listen(speaker, "many.>"),
        ];
        speaker.publish("many.x", bytesOf("once"));
        await Promise.all(all.map((received) => received.count(1)));
        await speaker.flush();
        expect(all.map((received) => received.texts())).toEqual([["once"], ["once"], ["once"], ["once"]]);
      });

      it("delivers nothing more once unsubscribed, in the middle of a burst", async () => {
        const { listener, speaker } = await connectTwo();
        let count = 0;
        const subscription = listener.subscribe("burst", () => {
          count += 1;
          if (count === 3) subscription.unsubscribe();
        });
        const end = await listen(listener, "burst-end");
        for (let at = 0; at < 100; at += 1) speaker.publish("burst", bytesOf("x"));
        speaker.publish("burst-end", bytesOf(""));
        await end.count(1);
        subscription.unsubscribe();
        expect(count).toBe(3);
      });

      it("takes a message of exactly the largest size and refuses a larger one before sending it", async () => {
        const { listener, speaker } = await connectTwo();
        const received = await listen(listener, "large");
        const tooLarge = new Uint8Array(speaker.maxPayloadBytes + 1);
        expect(() => speaker.publish("large", tooLarge)).toThrow(InvalidMessageError);
        await expect(speaker.request("large", tooLarge, WAIT)).rejects.toThrow(InvalidMessageError);
        speaker.publish("large", tooLarge.subarray(1));
        await received.count(1);
        expect(received.messages[0]?.data.length).toBe(speaker.maxPayloadBytes);
        expect(speaker.status()).toBe("connected");
      });

      it.each(["", "a b", "a\r\nPUB b 0\r\n", "a\tb"])("refuses the subject %j", async (subject) => {
        const { speaker } = await connectTwo();
        expect(() => speaker.publish(subject, bytesOf(""))).toThrow(InvalidMessageError);
        expect(() => speaker.publish("a", bytesOf(""), `${subject} `)).toThrow(InvalidMessageError);
        expect(() => speaker.subscribe(subject, () => undefined)).toThrow(InvalidMessageError);
        await expect(speaker.request(subject, bytesOf(""), WAIT)).rejects.toThrow(InvalidMessageError);
      });
    });

    describe("queue groups", () => {
      it("gives each message to one member, and every member its share", async () => {
        const { listener, speaker } = await connectTwo();
        const members = [
          await listen(listener, "work", "team"),
          await listen(speaker, "work", "team"),
          await listen(listener, "work", "team"),
        ];
        const observer = await listen(listener, "work");
        const sent = Array.from({ length: 300 }, (_, at) => `task ${at}`);
        for (const text of sent) speaker.publish("work", bytesOf(text));
        await observer.count(sent.length);
        await speaker.flush();
        await expect.poll(() => members.flatMap((member) => member.texts()).sort()).toEqual([...sent].sort());
        for (const member of members) expect(member.messages.length).toBeGreaterThan(50);
      });

      it("gives each message to one member of every group", async () => {
        const { listener, speaker } = await connectTwo();
        const first = await listen(listener, "groups.*", "first");
        const second = await listen(listener, "groups.a", "second");
        for (let at = 0; at < 10; at += 1) speaker.publish("groups.a", bytesOf(`${at}`));
        await Promise.all([first.count(10), second.count(10)]);
        expect(first.texts()).toEqual(second.texts());
      });

      it("passes over a member that has left", async () => {
        const { listener, speaker } = await connectTwo();
        const stays = await listen(listener, "leaving", "team");
        const leaves = await listen(speaker, "leaving", "team");
        leaves.subscription.unsubscribe();
        await speaker.flush();
        for (let at = 0; at < 20; at += 1) speaker.publish("leaving", bytesOf(`${at}`));
        await stays.count(20);
        expect(leaves.messages).toEqual([]);
      });
    });

    describe("requests", () => {
      it("are answered, with a reply subject under the inbox prefix", async () => {
        const { listener, speaker } = await connectTwo();
        const seen = await listen(listener, "greet");
        await answer(listener, "greet", (text) => `hello ${text}`);
        const outcome = await speaker.request("greet", bytesOf("bee"), WAIT);
        expect(outcome.kind === "answered" && textOf(outcome.data)).toBe("hello bee");
        expect(seen.messages[0]?.reply?.startsWith(`${speaker.inboxPrefix}.`)).toBe(true);
      });

      it("get each its own answer, a thousand at a time and in any order", async () => {
        const { listener, speaker } = await connectTwo();
        const waiting = await listen(listener, "shuffle");
        const outcomes = Promise.all(
          Array.from({ length: 1_000 }, (_, at) => speaker.request("shuffle", bytesOf(`${at}`), WAIT)),
        );
        await waiting.count(1_000);
        for (const { reply, data } of [...waiting.messages].reverse()) {
          if (reply !== undefined) listener.publish(reply, data);
        }
        const texts = (await outcomes).map((outcome) => outcome.kind === "answered" && textOf(outcome.data));
        expect(texts).toEqual(Array.from({ length: 1_000 }, (_, at) => `${at}`));
      });

      it("end as no-responders at once without a subscriber, also after a subscriber left", async () => {
        const { listener, speaker } = await connectTwo();
        expect(await speaker.request("nobody", bytesOf("?"), WAIT)).toEqual({ kind: "no-responders" });
        const received = await listen(listener, "nobody");
        const heard = speaker.request("nobody", bytesOf("?"), { timeoutMs: 50 });
        await received.count(1);
        received.subscription.unsubscribe();
        await listener.flush();
        expect(await heard).toEqual({ kind: "timeout" });
        expect(await speaker.request("nobody", bytesOf("?"), WAIT)).toEqual({ kind: "no-responders" });
      });

      it("end as timeout without an answer, and not before", async () => {
        const { listener, speaker } = await connectTwo();
        await listen(listener, "silent");
        const asked = performance.now();
        const outcomes = await Promise.all(
          [80, 40, 120].map(async (timeoutMs) => {
            const outcome = await speaker.request("silent", bytesOf("?"), { timeoutMs });
            return { ...outcome, early: performance.now() - asked < timeoutMs - 1 };
          }),
        );
        expect(outcomes).toEqual(Array(3).fill({ kind: "timeout", early: false }));
      });

      it("ignore an answer that comes too late, and a second one", async () => {
        const { listener, speaker } = await connectTwo();
        const received = await listen(listener, "late");
        expect(await speaker.request("late", bytesOf("1"), { timeoutMs: 20 })).toEqual({ kind: "timeout" });
        await received.count(1);
        const second = speaker.request("late", bytesOf("2"), WAIT);
        await received.count(2);
        const [lateReply, reply] = received.messages.map((message) => message.reply ?? "");
        for (const [subject, text] of [
          [lateReply, "too late"],
          [reply, "in time"],
          [reply, "twice"],
        ]) {
          listener.publish(subject ?? "", bytesOf(text ?? ""));
        }
        const outcome = await second;
        expect(outcome.kind === "answered" && textOf(outcome.data)).toBe("in time");
      });

      it("end as timeout when their signal aborts, before or during", async () => {
        const { listener, speaker } = await connectTwo();
        const received = await listen(listener, "aborted");
        const controller = new AbortController();
        const outcome = speaker.request("aborted", bytesOf("?"), { ...WAIT, signal: controller.signal });
        await received.count(1);
        controller.abort();
        expect(await outcome).toEqual({ kind: "timeout" });
        const tooLate = speaker.request("aborted", bytesOf("?"), { ...WAIT, signal: controller.signal });
        expect(await tooLate).toEqual({ kind: "timeout" });
        await speaker.flush();
        expect(received.messages.length).toBe(1);
      });

      it("send nothing to the reply subject of a plain publish without a subscriber", async () => {
        const { speaker } = await connectTwo();
        const replies = await listen(speaker, "my.replies");
        speaker.publish("nobody-here", bytesOf(""), "my.replies");
        speaker.publish("my.replies", bytesOf("end"));
        await replies.count(1);
        expect(replies.texts()).toEqual(["end"]);
      });
    });

    describe("closing", () => {
      it("sends published messages, notifies once, then stays silent", async () => {
        const { listener, speaker } = await connectTwo();
        const received = await listen(listener, "last-words");
        const own = await listen(speaker, "to-the-closed");
        const statuses: string[] = [];
        speaker.onStatus((status) => statuses.push(status));
        for (let at = 0; at < 100; at += 1) speaker.publish("last-words", bytesOf(`${at}`));
        await Promise.all([speaker.close(), speaker.close()]);
        await received.count(100);
        speaker.publish("last-words", bytesOf("from the grave"));
        listener.publish("to-the-closed", bytesOf("?"));
        speaker.subscribe("last-words", () => undefined).unsubscribe();
        await listener.flush();
        expect(speaker.status()).toBe("closed");
        expect(statuses).toEqual(["closed"]);
        expect(own.messages).toEqual([]);
        expect(received.messages.length).toBe(100);
        expect(await speaker.request("last-words", bytesOf(""), WAIT)).toEqual({ kind: "disconnected" });
        await expect(speaker.flush()).rejects.toThrow(UnreachableError);
      });

      it("ends open requests as disconnected", async () => {
        const { listener, speaker } = await connectTwo();
        const received = await listen(listener, "open");
        const outcome = speaker.request("open", bytesOf("?"), WAIT);
        await received.count(1);
        await speaker.close();
        expect(await outcome).toEqual({ kind: "disconnected" });
      });
    });

    describe("a broken connection", () => {
      it("ends open requests, keeps what is published and restores subscriptions", async () => {
        const { listener, speaker } = await connectTwo();
        const received = await listen(listener, "broken");
        const statuses: string[] = [];
        const stop = speaker.onStatus((status) => statuses.push(status));
        const open = speaker.request("broken", bytesOf("unanswered"), WAIT);
        await received.count(1);

        await server.cut();
        expect(await open).toEqual({ kind: "disconnected" });
        await Promise.all([statusOf(speaker, "reconnecting"), statusOf(listener, "reconnecting")]);
        expect(await speaker.request("broken", bytesOf("?"), WAIT)).toEqual({ kind: "disconnected" });
        await expect(speaker.flush()).rejects.toThrow(UnreachableError);
        for (let at = 0; at < 50; at += 1) speaker.publish("kept", bytesOf(`${at}`));
        const kept = new Received(speaker, "kept");

        await server.heal();
        await Promise.all([statusOf(speaker, "connected"), statusOf(listener, "connected")]);
        await kept.count(50);
        expect(kept.texts()).toEqual(Array.from({ length: 50 }, (_, at) => `${at}`));
        await listener.flush();
        speaker.publish("broken", bytesOf("again"));
        await received.count(2);
        expect(received.texts()).toEqual(["unanswered", "again"]);
        expect(statuses).toEqual(["reconnecting", "connected"]);
        stop();
      });

      it("can be closed while it is away", async () => {
        const { speaker } = await connectTwo();
        await server.cut();
        await statusOf(speaker, "reconnecting");
        await speaker.close();
        expect(speaker.status()).toBe("closed");
        await server.heal();
      });
    });
  });
}
