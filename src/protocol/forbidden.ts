// What a request comes to that the server's permissions do not allow: a refusal, as if a coordinator had said it, so that
// whoever asks need not know two sorts.

import { type Violation, violationText } from "../transport/transport.ts";
import type { CodedError } from "./schemas.ts";

export function forbidden(violation: Violation): CodedError {
  const consequence =
    violation.operation === "publish"
      ? "Nothing was done"
      : "No answer can be heard, and whether it was done is unknown. Name an inbox prefix that is permitted " +
        "(--inbox-prefix, NATS_INBOX_PREFIX)";
  const message = `${violationText(violation)}. ${consequence}. Ask whoever runs the server for the permission`;
  return { ok: false, code: "WAGGLE_FORBIDDEN", message };
}
