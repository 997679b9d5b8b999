// Reply subjects of a connection: a subject per request, heard by a single subscription created with the first
// request. open-requests.ts knows the open requests.

export class ReplyInbox {
  readonly #name: string;
  readonly #listen: (pattern: string) => void;
  #isOpen = false;

  /** @param name a subject of this connection alone
   *  @param listen subscribes to a pattern of subjects */
  constructor(name: string, listen: (pattern: string) => void) {
    this.#name = name;
    this.#listen = listen;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Must be called before each request is sent. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#listen(`${this.#name}.*`);
  }

  /** The subscription ended: the next request creates it again. */
  forget(): void {
    this.#isOpen = false;
  }

  /** The reply subject of the request `token`. */
  replyTo(token: string): string {
    return `${this.#name}.${token}`;
  }

  /** Token of the request with the reply subject `subject`. */
  tokenOf(subject: string): string {
    return subject.slice(this.#name.length + 1);
  }
}
