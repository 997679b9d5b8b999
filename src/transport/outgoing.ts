// What may leave through a transport: checked alike by each, before anything is queued.

import { InvalidMessageError } from "../errors.ts";

/** @throws InvalidMessageError when `subject` is empty or holds white space (a line break in it would be a
 *  command to the server), or `data` is larger than the server takes */
export function checkOutgoing(subject: string, data: Uint8Array, maxPayloadBytes: number): void {
  checkSubject(subject);
  if (data.length > maxPayloadBytes) {
    throw new InvalidMessageError(
      `a message of ${data.length} bytes is larger than the ${maxPayloadBytes} bytes that the server takes; ` +
        "make it smaller, or raise max_payload of the server",
    );
  }
}

/** @throws InvalidMessageError when `subject` is empty or holds white space */
export function checkSubject(subject: string): void {
  if (subject === "" || WHITE_SPACE.test(subject)) {
    throw new InvalidMessageError(`not a subject: ${JSON.stringify(subject)}`);
  }
}

const WHITE_SPACE = /\s/;
