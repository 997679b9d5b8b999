// Declares groups and projects to the leader, from the file that `waggle auth` keeps for coordinators. `up` does so
// whenever its coordinator takes the lead. Only what the swarm lacks is set: what an operator set stays.

import { readFileSync } from "node:fs";
import type { Logger } from "pino";
import { defer, distinctUntilChanged, EMPTY, retry, type Subscription, switchMap, tap, timer } from "rxjs";
import * as z from "zod";
import type { Swarm } from "../client/swarm.ts";
import type { Coordinator } from "../coordinator/coordinator.ts";
import { InvalidConfigError, messageOf } from "../errors.ts";
import { SUBJECT_TOKEN_PATTERN } from "../ids.ts";
import { limits } from "../limits.ts";
import { grantSchema, policyPatchSchema, projectPatchSchema } from "../protocol/settings-schemas.ts";
import { openSwarm } from "./connect.ts";
import type { VerbContext } from "./verb.ts";

const field = "declarationsFile";
const token = z.string().regex(SUBJECT_TOKEN_PATTERN);

const declarationsSchema = z.strictObject({
  policy: policyPatchSchema.pick({ security: true, agents: true }).strict().optional(),
  grants: z.record(token, grantSchema).default({}),
  projects: z.record(token, projectPatchSchema.pick({ inboxUsers: true }).strict()).default({}),
});
export type DeclarationsFile = z.infer<typeof declarationsSchema>;

/** @throws InvalidConfigError */
export function declarationsIn(path: string): DeclarationsFile {
  let given: unknown;
  try {
    given = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new InvalidConfigError(`${field}: cannot read ${path}: ${messageOf(cause)}`, { cause, field });
  }
  const checked = declarationsSchema.safeParse(given);
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  const at = issue?.path.join(".") ?? "";
  throw new InvalidConfigError(
    `${field}: ${path}: ${at === "" ? "" : `${at}: `}${issue?.message ?? "is not valid"}`,
    { field },
  );
}

/** Declares at each beginning of a term, until the leader has taken all. */
export function declareWhenLeading(
  coordinator: Pick<Coordinator, "role$" | "whenLeading">,
  declarations: DeclarationsFile,
  { settings, signal, logger }: Pick<VerbContext, "settings" | "signal" | "logger">,
): Subscription {
  const declareOnce = async () => {
    const term = await coordinator.whenLeading();
    const swarm = await openSwarm({ settings, signal });
    try {
      await declare(swarm, declarations, { isNew: term === 1, logger });
    } finally {
      await swarm.close();
    }
  };
  const warn = (error: unknown) =>
    logger.warn({ err: error }, "the groups and projects of the declarations are not set yet; trying again");
  return coordinator.role$
    .pipe(
      distinctUntilChanged(),
      switchMap((role) =>
        role === "leading"
          ? defer(declareOnce).pipe(
              tap({ error: warn }),
              retry({ delay: () => (signal.aborted ? EMPTY : timer(limits.askBackoffMsMax)) }),
            )
          : EMPTY,
      ),
    )
    .subscribe();
}

/** @param isNew the swarm begins: its policy is not set yet */
export async function declare(
  swarm: Pick<Swarm, "settings" | "setPolicy" | "setGrant" | "setProject">,
  { policy, grants, projects }: DeclarationsFile,
  { isNew, logger }: { readonly isNew: boolean; readonly logger: Pick<Logger, "info"> },
): Promise<void> {
  for (const [group, grant] of Object.entries(grants)) {
    const now = await swarm.settings({ name: group });
    if (now.grants.some((each) => each.group === group)) continue;
    await swarm.setGrant(group, grant);
    logger.info({ group }, `group ${group} is declared`);
  }
  for (const [project, { inboxUsers }] of Object.entries(projects)) {
    const now = await swarm.settings({ name: project });
    const known = now.projects.find((each) => each.project === project)?.settings.inboxUsers ?? [];
    const missing = (inboxUsers ?? []).filter((user) => !known.includes(user));
    if (missing.length === 0) continue;
    await swarm.setProject(project, { inboxUsers: [...known, ...missing] });
    logger.info({ project }, `project ${project} answers ${missing.join(", ")}`);
  }
  // The policy last: from then on, what is not declared is refused.
  if (isNew && policy !== undefined) {
    await swarm.setPolicy(policy);
    logger.info(policy, "the swarm begins with the declared policy");
  }
}
