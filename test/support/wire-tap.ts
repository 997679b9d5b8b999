// Everything that passes over a hub, by subject and content, for tests that say what must not be seen.

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

  /** What a coordinator said, requests and its own beats aside: answers and pushes. */
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
