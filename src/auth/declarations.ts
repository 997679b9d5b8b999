// What the leader of a permissioned swarm must know of the roster: the groups of agents with their grants, and whose
// inboxes get answers about each project. The file is in the folder of every coordinator, which tells the leader.

import { join } from "node:path";
import { type AuthFolder, holderFolderOf, isThere, writeSecret } from "./auth-folder.ts";
import { type Credential, isValid, type Roster, type SwarmRoster } from "./roster.ts";

export const DECLARATIONS_FILE = "declarations.json";

export interface Declarations {
  /** Set when the swarm begins; an operator may change it later. */
  readonly policy: { readonly security: "strict"; readonly agents: "declared" };
  readonly grants: Readonly<Record<string, NonNullable<Credential["grant"]>>>;
  readonly projects: Readonly<Record<string, { readonly inboxUsers: readonly string[] }>>;
}

/** Roles that ask about any project, under the name of their credential. */
export const asksAboutAll: ReadonlySet<string> = new Set(["coordinator", "operator", "auditor"]);

/** @param now ms since the Unix epoch */
export function declarationsOf({ credentials }: SwarmRoster, now: number): Declarations {
  const valid = credentials.filter((credential) => isValid(credential, now));
  const grants: Record<string, NonNullable<Credential["grant"]>> = {};
  for (const { role, group, grant } of valid)
    if (role === "agent" && group !== undefined) grants[group] = grant ?? grants[group] ?? {};
  const projects = new Set(credentials.flatMap(({ project }) => project ?? []));
  const usersOf = (project: string) =>
    valid.filter((each) => each.project === project || asksAboutAll.has(each.role)).map(({ name }) => name);
  return {
    policy: { security: "strict", agents: "declared" },
    grants,
    projects: Object.fromEntries(
      [...projects].sort().map((project) => [project, { inboxUsers: usersOf(project).sort() }]),
    ),
  };
}

/** Rewrites the file of every coordinator whose folder is still here. */
export function writeDeclarations(folder: AuthFolder, roster: Roster, now: number): void {
  for (const [swarm, of] of Object.entries(roster.swarms))
    for (const { role, name, revokedAt } of of.credentials) {
      const own = holderFolderOf(folder, swarm, name);
      if (role !== "coordinator" || revokedAt !== undefined || !isThere(own)) continue;
      writeSecret(join(own, DECLARATIONS_FILE), `${JSON.stringify(declarationsOf(of, now), null, 2)}\n`);
    }
}
