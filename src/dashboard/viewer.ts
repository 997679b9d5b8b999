// One open live stream: Server-Sent Events to one browser tab. A viewer that reads too slowly misses updates, and gets
// a whole state when it has caught up.

import type { ServerResponse } from "node:http";
import { limits } from "../limits.ts";
import { safeHeaders } from "./http-answer.ts";
import type { LiveMessageName } from "./wire.ts";

/** A message as bytes on the stream, made once for all viewers. @param id opaque; the browser returns it */
export function frameOf(name: LiveMessageName, message: unknown, id?: string): string {
  return `event: ${name}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(message)}\n\n`;
}

export class Viewer {
  readonly #response: ServerResponse;
  #isBehind = false;
  /** The last loss sent to the viewer; empty: none, or it is over. */
  knownLoss = "";

  /** @param onCaughtUp called when a slow viewer has read everything: it needs a whole state */
  constructor(
    response: ServerResponse,
    { onCaughtUp, onClose }: { readonly onCaughtUp: () => void; readonly onClose: () => void },
  ) {
    this.#response = response;
    response.writeHead(200, {
      ...safeHeaders,
      "content-type": "text/event-stream; charset=utf-8",
      "x-accel-buffering": "no",
    });
    response.write(`retry: ${limits.dashboardPollMs}\n\n`);
    response.on("drain", () => {
      if (!this.#isBehind) return;
      this.#isBehind = false;
      onCaughtUp();
    });
    response.on("close", onClose);
    response.on("error", onClose);
  }

  get isClosed(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  /** False: the viewer is behind, and the frame was left out. */
  send(frame: string): boolean {
    if (this.#isBehind || this.isClosed) return false;
    this.#response.write(frame);
    if (this.#response.writableLength > limits.dashboardPendingBytesMax) this.#isBehind = true;
    return true;
  }

  end(): void {
    this.#response.end();
  }
}
