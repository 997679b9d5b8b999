// The error for a request without permission of the server. It has the form of a coordinator's refusal, so that
// callers handle a single form.

import type { CodedError } from "./schemas.ts";

/** @param violation from the transport (transport/transport.ts) */
export function forbidden({
  operation,
  subject,
}: {
  readonly operation: "publish" | "subscribe";
  readonly subject: string;
}): CodedError {
  const consequence =
    operation === "publish"
      ? "Nothing was done"
      : "No answer can arrive, and the outcome is unknown. Set an inbox prefix that is permitted " +
        "(--inbox-prefix, NATS_INBOX_PREFIX)";
  const sentence = `the server does not permit this user to ${operation} to ${subject}`;
  const message = `${sentence}. ${consequence}. Ask the operator of the server for the permission`;
  return { ok: false, code: "WAGGLE_FORBIDDEN", message };
}
