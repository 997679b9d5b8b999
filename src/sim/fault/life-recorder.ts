// Records what one life asks and is told, for the checkers of histories. What was never answered is recorded when the
// life ends, and goes no further: nothing of an ended life runs.

import type { RequestOptions, RequestOutcome, Transport } from "../../transport/transport.ts";
import { type Recorder, RecordingTransport } from "../history/recording-transport.ts";
import type { Life } from "./life.ts";

export class LifeRecorder extends RecordingTransport {
  readonly #life: Life;

  constructor(inner: Transport, recorder: Recorder, life: Life) {
    super(inner, recorder);
    this.#life = life;
  }

  override async request(
    subject: string,
    payload: Uint8Array,
    options: RequestOptions,
  ): Promise<RequestOutcome> {
    const outcome = await super.request(subject, payload, options);
    if (this.#life.hasEnded) return await new Promise(() => undefined);
    return outcome;
  }
}
