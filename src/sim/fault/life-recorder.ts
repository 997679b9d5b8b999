// Records the requests and answers of a process for the checkers of histories. Unanswered requests are recorded at the
// end of the process, which then runs nothing more. Also notes the incarnation of each join.

import { decode } from "../../protocol/codec.ts";
import { joinRequestSchema } from "../../protocol/schemas.ts";
import type { Forbidden, RequestOptions, RequestOutcome, Transport } from "../../transport/transport.ts";
import { type Recorder, RecordingTransport } from "../history/recording-transport.ts";
import type { Life } from "./life.ts";

export class LifeRecorder extends RecordingTransport {
  readonly #life: Life;

  readonly #agent: string;

  /** @param agent whose joins count: a process may run a second agent */
  constructor(
    inner: Transport,
    recorder: Recorder,
    { life, agent }: { readonly life: Life; readonly agent: string },
  ) {
    super(inner, recorder);
    this.#life = life;
    this.#agent = agent;
  }

  override async request(
    subject: string,
    payload: Uint8Array,
    options: RequestOptions,
  ): Promise<RequestOutcome | Forbidden> {
    this.#noteJoin(subject, payload);
    const outcome = await super.request(subject, payload, options);
    if (this.#life.hasEnded) return await new Promise(() => undefined);
    return outcome;
  }

  #noteJoin(subject: string, payload: Uint8Array): void {
    if (!subject.endsWith(`.${this.#agent}.join`)) return;
    const join = decode(payload, joinRequestSchema);
    if (join.ok) this.#life.incarnation = join.value.incarnation;
  }
}
