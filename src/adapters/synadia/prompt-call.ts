// One prompt to a foreign agent: the request, the chunks of the answer, queries in between, and how it ended. The end
// is a value; agent-handler.ts decides what it means for the task.
//
// The protocol has no cancel: an agent works on after its caller has left. So after an abort the call still waits for
// the end of the answer, for the idle limit at most, and the agent gets no second prompt meanwhile.

import { Buffer } from "node:buffer";
import type { Clock } from "../../clock.ts";
import type { ForbiddenError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { Subscription } from "../../transport/transport.ts";
import type { Answer, RequestWire } from "../nats-service/nats.ts";
import { type Attachment, type Query, type Refusal, readChunk, readRefusal } from "./messages.ts";

export interface PromptCallDeps {
  readonly wire: Pick<RequestWire, "ask" | "publish">;
  readonly clock: Clock;
  /** Longest silence of the agent, ms. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
  /** Called with each part of the answer. */
  readonly onText: (text: string) => void;
  /** Answers a query of the agent. Never rejects. */
  readonly decide: (query: Query) => Promise<string>;
}

export type PromptEnd =
  | { readonly kind: "answered"; readonly text: string; readonly attachments: readonly Attachment[] }
  /** `hasBegun`: the refusal came after an ack, a part of the answer, or a question. */
  | { readonly kind: "refused"; readonly refusal: Refusal; readonly hasBegun: boolean }
  /** Nobody listens at the subject: nothing was done. */
  | { readonly kind: "no-responders" }
  /** The server permits no prompts on the subject, or no answers. */
  | { readonly kind: "forbidden"; readonly error: ForbiddenError }
  /** The agent may have done anything. */
  | { readonly kind: "silent"; readonly isAcknowledged: boolean }
  /** The agent broke the protocol. */
  | { readonly kind: "broken"; readonly why: string }
  | { readonly kind: "aborted" };

/** @throws InvalidMessageError when the request cannot be sent */
export async function askAgent(
  request: { readonly subject: string; readonly data: Uint8Array },
  deps: PromptCallDeps,
): Promise<PromptEnd> {
  return await new Promise((resolve, reject) => {
    const call = new PromptCall(deps, resolve);
    try {
      call.open(request);
    } catch (error) {
      call.close();
      reject(error);
    }
  });
}

class PromptCall {
  readonly #deps: PromptCallDeps;
  readonly #resolve: (end: PromptEnd) => void;
  #subscription: Subscription | undefined;
  #cancelTimer: () => void = () => undefined;
  #cancelGrace: () => void = () => undefined;
  #isOver = false;
  #isAcknowledged = false;
  #text: string[] = [];
  #bytes = 0;
  readonly #attachments: Attachment[] = [];
  /** The first fault; the call goes on to the end of the answer, because the agent does. */
  #fault: string | undefined;
  readonly #asked = new Set<string>();
  #openQueries = 0;

  constructor(deps: PromptCallDeps, resolve: (end: PromptEnd) => void) {
    this.#deps = deps;
    this.#resolve = resolve;
  }

  open({ subject, data }: { readonly subject: string; readonly data: Uint8Array }): void {
    const { signal, wire } = this.#deps;
    if (signal.aborted) return this.#end({ kind: "aborted" });
    signal.addEventListener("abort", this.#onAbort, { once: true });
    this.#waitOn();
    this.#subscription = wire.ask(
      subject,
      data,
      (answer) => this.#take(answer),
      (error) => this.#end({ kind: "forbidden", error }),
    );
  }

  close(): void {
    this.#isOver = true;
    this.#cancelTimer();
    this.#cancelGrace();
    this.#subscription?.unsubscribe();
    this.#deps.signal.removeEventListener("abort", this.#onAbort);
  }

  #end(end: PromptEnd): void {
    if (this.#isOver) return;
    this.close();
    this.#resolve(this.#deps.signal.aborted ? { kind: "aborted" } : end);
  }

  readonly #onAbort = (): void => {
    const { clock, idleMs } = this.#deps;
    this.#cancelGrace = clock.after(idleMs, () => this.#end({ kind: "aborted" }));
  };

  /** Any message renews the idle limit. An open query suspends the limit: the agent waits for the answer. */
  #waitOn(): void {
    const { clock, idleMs } = this.#deps;
    this.#cancelTimer();
    if (this.#openQueries > 0) return;
    this.#cancelTimer = clock.after(idleMs, () =>
      this.#end({ kind: "silent", isAcknowledged: this.#isAcknowledged }),
    );
  }

  #take(answer: Answer): void {
    if (this.#isOver) return;
    if (answer.isNoResponders && !this.#hasBegun) return this.#end({ kind: "no-responders" });
    const { data, header } = answer;
    const code = header("Nats-Service-Error-Code") ?? "";
    if (code !== "") {
      const refusal = readRefusal(code, { error: header("Nats-Service-Error"), data });
      return this.#end({ kind: "refused", refusal, hasBegun: this.#hasBegun });
    }
    this.#waitOn();
    if (data.length === 0 && !answer.hasHeaders) return this.#end(this.#whole());
    const chunk = readChunk(data);
    if (!chunk.ok) return this.#note(`it sent an invalid chunk (${chunk.message})`);
    switch (chunk.value.type) {
      case "ack":
        this.#isAcknowledged = true;
        break;
      case "response":
        this.#isAcknowledged = true;
        this.#keep(chunk.value.text, chunk.value.attachments);
        break;
      case "query":
        void this.#answer(chunk.value.query);
        break;
      case "other":
        break;
    }
  }

  get #hasBegun(): boolean {
    return this.#isAcknowledged || this.#asked.size > 0;
  }

  #whole(): PromptEnd {
    if (this.#fault !== undefined) return { kind: "broken", why: this.#fault };
    if (!this.#isAcknowledged) return { kind: "broken", why: "it ended the answer without an ack" };
    return { kind: "answered", text: this.#text.join(""), attachments: this.#attachments };
  }

  #note(fault: string): void {
    this.#fault ??= fault;
  }

  #keep(text: string, attachments: readonly Attachment[]): void {
    const files = attachments.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(attachments));
    this.#bytes += Buffer.byteLength(text) + files;
    if (this.#bytes > limits.payloadBytesMax) {
      this.#note(`its answer has more than ${limits.payloadBytesMax / 1024} KiB`);
      this.#text = [];
      this.#attachments.length = 0;
      return;
    }
    this.#attachments.push(...attachments);
    if (text === "") return;
    this.#text.push(text);
    if (!this.#deps.signal.aborted) this.#deps.onText(text);
  }

  /** Answers each query once. */
  async #answer(query: Query): Promise<void> {
    if (this.#asked.has(query.id) || this.#asked.size >= limits.promptQueriesMax) return;
    this.#asked.add(query.id);
    this.#openQueries += 1;
    this.#waitOn();
    const answer = await this.#deps.decide(query);
    this.#openQueries -= 1;
    if (this.#isOver) return;
    this.#deps.wire.publish(query.replySubject, Buffer.from(answer));
    this.#waitOn();
  }
}
