// Reply subjects of a connection.

import { describe, expect, it } from "vitest";
import { ReplyInbox } from "../../src/transport/reply-inbox.ts";

describe("an inbox for replies", () => {
  it("is listened to once, when the first request is sent", () => {
    const patterns: string[] = [];
    const inbox = new ReplyInbox("_INBOX.a", (pattern) => patterns.push(pattern));
    expect(patterns).toEqual([]);
    inbox.open();
    inbox.open();
    expect(patterns).toEqual(["_INBOX.a.*"]);
  });

  it("knows a request again by the subject of its answer", () => {
    const inbox = new ReplyInbox("_INBOX.a", () => undefined);
    expect(inbox.tokenOf(inbox.replyTo("1z"))).toBe("1z");
  });
});
