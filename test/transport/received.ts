// Records the messages of a subscription. Tests wait for a count, never for a time.

import type { Message, SubscribeOptions, Subscription, Transport } from "../../src/transport/transport.ts";

export class Received {
  readonly messages: Message[] = [];
  readonly subscription: Subscription;
  #waiting: { count: number; resolve: () => void }[] = [];

  constructor(transport: Transport, subject: string, options?: SubscribeOptions) {
    this.subscription = transport.subscribe(subject, (message) => this.#receive(message), options);
  }

  /** Resolves when `count` messages have come, all together. */
  async count(count: number): Promise<void> {
    if (this.messages.length >= count) return;
    await new Promise<void>((resolve) => this.#waiting.push({ count, resolve }));
  }

  texts(): string[] {
    return this.messages.map(({ data }) => textOf(data));
  }

  subjects(): string[] {
    return this.messages.map(({ subject }) => subject);
  }

  #receive(message: Message): void {
    this.messages.push(message);
    const ready = this.#waiting.filter(({ count }) => count <= this.messages.length);
    this.#waiting = this.#waiting.filter((waiting) => !ready.includes(waiting));
    for (const { resolve } of ready) resolve();
  }
}

/** The next status of a connection among `wanted`; the present status counts. */
export async function statusOf(transport: Transport, ...wanted: readonly string[]): Promise<void> {
  if (wanted.includes(transport.status())) return;
  await new Promise<void>((resolve) => {
    const stop = transport.onStatus((status) => {
      if (!wanted.includes(status)) return;
      stop();
      resolve();
    });
  });
}

export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function textOf(data: Uint8Array): string {
  return new TextDecoder().decode(data);
}
