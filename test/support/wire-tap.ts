// All messages of a hub, by subject and content, for tests of messages that must not appear.

import type { MemoryHub } from "../../src/transport/memory.ts";
import { subjects } from "./swarm.ts";

export interface Tapped {
  readonly subject: string;
  readonly text: string;
}

export class WireTap {
  readonly all: Tapped[] = [];

  constructor(hub: MemoryHub) {
    hub.connect().subscribe(">", ({ subject, data }) => {
      this.all.push({ subject, text: Buffer.from(data).toString() });
    });
  }

  /** Answers and pushes of coordinators, without their own requests and heartbeats. */
  said(): string[] {
    const isAsked =
      /\.(submit|cancel|await|join|leave|heartbeat|progress|result|acquire|release|drain|undrain)$|\.query\./;
    return this.all
      .map(({ subject }) => subject)
      .filter((subject) => subject !== subjects.coordinator && !isAsked.test(subject));
  }

  clear(): void {
    this.all.length = 0;
  }
}
