// Records the requests and answers of a process for the checkers of histories. Unanswered requests are recorded at the
// end of the process, which then runs nothing more. Also notes the incarnation of each join.

import { decode } from "../../protocol/codec.ts";
import { joinRequestSchema } from "../../protocol/schemas.ts";
import type { Forbidden, RequestOptions, RequestOutcome, Transport } from "../../transport/transport.ts";
import { type Recorder, RecordingTransport } from "../history/recording-transport.ts";
import type { Session } from "./session.ts";

export class SessionRecorder extends RecordingTransport {
  readonly #session: Session;

  readonly #agent: string;

  /** @param agent whose joins count: a process may run a second agent */
  constructor(
    inner: Transport,
    recorder: Recorder,
    { session, agent }: { readonly session: Session; readonly agent: string },
  ) {
    super(inner, recorder);
    this.#session = session;
    this.#agent = agent;
  }

  override async request(
    subject: string,
    payload: Uint8Array,
    options: RequestOptions,
  ): Promise<RequestOutcome | Forbidden> {
    this.#noteJoin(subject, payload);
    const outcome = await super.request(subject, payload, options);
    if (this.#session.hasEnded) return await new Promise(() => undefined);
    return outcome;
  }

  #noteJoin(subject: string, payload: Uint8Array): void {
    if (!subject.endsWith(`.${this.#agent}.join`)) return;
    const join = decode(payload, joinRequestSchema);
    if (join.ok) this.#session.incarnation = join.value.incarnation;
  }
}
