// Where a connection's requests are answered: a subject for each, heard by one subscription that is made with the
// first. Which of them are open: open-requests.ts.

export class ReplyInbox {
  readonly #name: string;
  readonly #listen: (pattern: string) => void;
  #isOpen = false;

  /** @param name a subject of this connection alone · @param listen subscribes to a pattern of subjects */
  constructor(name: string, listen: (pattern: string) => void) {
    this.#name = name;
    this.#listen = listen;
  }

  /** To be called before each request is sent. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#listen(`${this.#name}.*`);
  }

  /** The subscription is no more: the next request makes it again. */
  forget(): void {
    this.#isOpen = false;
  }

  /** The subject on which the request `token` is answered. */
  replyTo(token: string): string {
    return `${this.#name}.${token}`;
  }

  /** Of the request that is answered on `subject`, which the subscription heard. */
  tokenOf(subject: string): string {
    return subject.slice(this.#name.length + 1);
  }
}
