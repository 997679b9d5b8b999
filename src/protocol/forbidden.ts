// The error for a request that the server's permissions do not allow: in the form of a coordinator's refusal, so that
// callers handle only one form.

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
