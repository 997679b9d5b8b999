// Permissions in the forms that nats-server reads: text of its configuration, and claims of a JWT.

import type { Permissions } from "../protocol/permissions.ts";

const NANOSECONDS_PER_MS = 1_000_000;

/** For the field `permissions` of a user in a configuration file. */
export function permissionsText({ publish, subscribe, answers }: Permissions): string {
  const parts = [
    `publish: { allow: ${JSON.stringify(publish)} }`,
    `subscribe: { allow: ${JSON.stringify(subscribe)} }`,
    ...(answers === undefined
      ? []
      : [`allow_responses: { max: ${answers.max}, expires: "${answers.expiresMs}ms" }`]),
  ];
  return `{ ${parts.join(", ")} }`;
}

/** For the user template of a scoped signing key, or the claims of a user. */
export function permissionsClaim({ publish, subscribe, answers }: Permissions): object {
  return {
    pub: { allow: publish },
    sub: { allow: subscribe },
    ...(answers === undefined
      ? {}
      : { resp: { max: answers.max, ttl: answers.expiresMs * NANOSECONDS_PER_MS } }),
  };
}
