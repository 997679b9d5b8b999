// What viewers are told of a loss: each once, also a viewer that reads too slowly while it happens.

import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { systemRandom } from "../../src/clock.ts";
import { LiveViews } from "../../src/dashboard/live-views.ts";
import type { Look } from "../../src/dashboard/swarm-watch.ts";
import type { HistoryPoint } from "../../src/dashboard/wire.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { silentLogger } from "../support/swarm.ts";

const point: HistoryPoint = { at: 0, values: {} } as unknown as HistoryPoint;
const calm: Look = { at: 0, totals: undefined, lost: undefined, lostMs: undefined };
const lost: Look = { ...calm, lost: { what: "leader", sinceAt: 0, message: "none", next: "waggle up" } };
const lostServer: Look = {
  ...calm,
  lost: { what: "server", sinceAt: 0, message: "off", next: "waggle doctor" },
};

/** A browser's end of the stream, which may stop reading. */
class Reader extends EventEmitter {
  readonly destroyed = false;
  readonly writableEnded = false;
  writableLength = 0;
  text = "";

  readonly writeHead = () => this;
  readonly end = () => this;

  write(text: string): boolean {
    this.text += text;
    return true;
  }

  /** The frames of losses so far. */
  get losses(): readonly string[] {
    return [...this.text.matchAll(/event: (lost|back)\ndata: (.*)/g)].map(([, name, data = ""]) => {
      const { what, lostMs } = JSON.parse(data);
      return name === "lost" ? `lost ${what}` : `back after ${lostMs} ms`;
    });
  }
}

async function watched() {
  const views = new LiveViews({
    ...{ clock: new ManualClock(), random: systemRandom, logger: silentLogger, onWatched: () => undefined },
    sourceOf: () => ({ compute: () => Promise.resolve({}), idx: () => 0 }),
  });
  const open = async () => {
    const reader = new Reader();
    const request = { headers: {} } as IncomingMessage;
    await views.open(request, reader as unknown as ServerResponse, { view: "overview" } as never);
    return reader;
  };
  return { views, open };
}

describe("a viewer", () => {
  it("is told of a loss once, and of its end once", async () => {
    const { views, open } = await watched();
    const reader = await open();
    for (const look of [calm, lost, lost, { ...calm, lostMs: 1_500 }, calm]) views.look(look, point);
    expect(reader.losses).toEqual(["lost leader", "back after 1500 ms"]);
    views.close();
  });

  it("is told again where the reason changes", async () => {
    const { views, open } = await watched();
    const reader = await open();
    for (const look of [lostServer, lost, lost]) views.look(look, point);
    expect(reader.losses).toEqual(["lost server", "lost leader"]);
    views.close();
  });

  it("that comes during a loss gets the loss first", async () => {
    const { views, open } = await watched();
    views.look(lost, point);
    const reader = await open();
    expect(reader.text.match(/event: \w+/g)).toEqual(["event: lost", "event: state"]);
    views.look({ ...calm, lostMs: 800 }, point);
    expect(reader.losses).toEqual(["lost leader", "back after 800 ms"]);
    views.close();
  });

  it("that reads nothing meanwhile is told as soon as it has caught up", async () => {
    const { views, open } = await watched();
    const reader = await open();
    const missing = (look: Look) => {
      reader.writableLength = limits.dashboardPendingBytesMax + 1;
      views.look(reader.losses.length === 0 ? calm : lost, point); // the last frame that fits
      views.look(look, point);
      reader.writableLength = 0;
      reader.emit("drain");
    };
    missing(lost);
    expect(reader.losses).toEqual([]);
    views.look(lost, point);
    expect(reader.losses).toEqual(["lost leader"]);
    missing({ ...calm, lostMs: 2_000 });
    expect(reader.losses).toEqual(["lost leader"]);
    views.look(calm, point);
    expect(reader.losses).toEqual(["lost leader", "back after 2000 ms"]);
    views.close();
  });
});
