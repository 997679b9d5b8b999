// Permissions in the forms that nats-server reads: text of its configuration, and claims of a JWT.

import { ANSWERS_EXPIRE_MS, type Permissions } from "../protocol/permissions.ts";

/** For the field `permissions` of a user in a configuration file. */
export function permissionsText({ publish, subscribe, answers }: Permissions): string {
  const parts = [
    `publish: { allow: ${JSON.stringify(publish)} }`,
    `subscribe: { allow: ${JSON.stringify(subscribe)} }`,
    ...(answers === 0 ? [] : [`allow_responses: { max: ${answers}, expires: "${ANSWERS_EXPIRE_MS}ms" }`]),
  ];
  return `{ ${parts.join(", ")} }`;
}

/** For the user template of a scoped signing key, or the claims of a user. */
export function permissionsClaim({ publish, subscribe, answers }: Permissions): object {
  return {
    pub: { allow: publish },
    sub: { allow: subscribe },
    ...(answers === 0 ? {} : { resp: { max: answers, ttl: ANSWERS_EXPIRE_MS * 1_000_000 } }),
  };
}
