// Checks of outgoing messages, the same for all transports, before anything is queued.

import { InvalidMessageError } from "../errors.ts";

/** @throws InvalidMessageError when `subject` is empty or contains white space (a line break would be a command
 *    to the server), or when `data` exceeds the server's maximum */
export function checkOutgoing(subject: string, data: Uint8Array, maxPayloadBytes: number): void {
  checkSubject(subject);
  if (data.length > maxPayloadBytes) {
    throw new InvalidMessageError(
      `a message of ${data.length} bytes is larger than the ${maxPayloadBytes} bytes that the server accepts; ` +
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
