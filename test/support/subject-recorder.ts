// The subjects that a process publishes and subscribes on, read from the bytes that it sends to a nats-server, for a
// proxy (test/chaos/proxy.ts). Not here: contents of messages (test/chaos/publish-tap.ts).

import type { Tap } from "../chaos/proxy.ts";

const LINE_END = "\r\n";

export class SubjectRecorder {
  readonly published = new Set<string>();
  readonly subscribed = new Set<string>();

  /** A tap for one connection from its beginning. */
  tap(): Tap {
    let pending: Buffer = Buffer.alloc(0);
    let skip = 0;
    return {
      push: (bytes) => {
        pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes]);
        for (;;) {
          if (pending.length < skip) return;
          pending = pending.subarray(skip);
          skip = 0;
          const end = pending.indexOf(LINE_END);
          if (end === -1) return;
          skip = this.#note(pending.toString("latin1", 0, end).split(" "));
          pending = pending.subarray(end + LINE_END.length);
        }
      },
    };
  }

  /** @returns the length of what follows the line */
  #note([verb, subject = "", ...rest]: string[]): number {
    if (verb === "SUB") this.subscribed.add(subject);
    if (verb !== "PUB" && verb !== "HPUB") return 0;
    this.published.add(subject);
    return Number(rest.at(-1)) + LINE_END.length;
  }
}

/** Whether a permission allows a subject, or every subject of a subscription. */
export function allows(permission: string, subject: string): boolean {
  const [wanted, asked] = [permission.split("."), subject.split(".")];
  for (const [at, token] of wanted.entries()) {
    if (token === ">") return asked.length > at;
    const given = asked[at];
    if (given === undefined || given === ">") return false;
    if (token !== "*" && token !== given) return false;
  }
  return asked.length === wanted.length;
}
