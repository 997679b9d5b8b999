// Explains a failed first connection, with advice. Relies on names and codes of errors, without the client library.
// Never repeats text that could hold credentials.

import { UnreachableError } from "../errors.ts";
import { limits } from "../limits.ts";
import { describeAddress, type ServerAddress } from "./server-address.ts";

export function explainConnectFailure(cause: unknown, address: ServerAddress): UnreachableError {
  const error = cause instanceof Error ? cause : new Error(String(cause));
  return new UnreachableError(sentenceFor(error, describeAddress(address)), { cause });
}

function sentenceFor(error: Error, where: string): string {
  const codes = codesOf(error);
  const hasCode = (pattern: RegExp) => codes.some((code) => pattern.test(code));
  if (error.name === "AuthorizationError" || error.name === "UserAuthenticationExpiredError") {
    return `NATS at ${where} refused the credentials: check the user, token or creds file for the address.`;
  }
  if (error.message === "connection refused" || hasCode(/^ECONNREFUSED$/)) {
    return (
      `Nothing listens at ${where}: start a NATS server there, or name a different server with --nats or NATS_URL. ` +
      "Without --nats and NATS_URL, `waggle up` starts a broker on this machine."
    );
  }
  if (error.name === "TimeoutError") {
    return (
      `No NATS server answered at ${where} within ${limits.connectTimeoutMs / 1000} s: ` +
      "check the address, the port, firewalls, and the client certificate if the server requires one."
    );
  }
  if (hasCode(/^(ENOTFOUND|EAI_AGAIN)$/)) return `No host of this name: ${where}. Check the address.`;
  if (hasCode(/CERT|TLS|SSL|SELF_SIGNED|SIGNATURE|ISSUER/) || /'tls'/.test(error.message)) {
    return (
      `No encrypted connection to NATS at ${where} (${error.message}): ` +
      "check the CA and client certificates, and whether the server offers TLS."
    );
  }
  return `Cannot connect to NATS at ${where} (${error.message}): check the address and the server's log.`;
}

/** Codes of the error and all causes. */
function codesOf(error: Error): readonly string[] {
  const { code } = error as NodeJS.ErrnoException;
  const inner = error.cause instanceof Error ? codesOf(error.cause) : [];
  return code === undefined ? inner : [String(code), ...inner];
}
