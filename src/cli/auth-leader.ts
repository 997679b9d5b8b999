// What `waggle auth` tells the leader: the grant of a group of agents, and whose inboxes get answers about a project.
// Asked with the operator's credential of the same folder, where a coordinator runs. Otherwise the leader learns it
// from the coordinators' declarations at the next start, or an operator sets it by command.

import { join } from "node:path";
import { type AuthFolder, holderFolderOf, isThere } from "../auth/auth-folder.ts";
import { asksAboutAll, declarationsOf } from "../auth/declarations.ts";
import { type Credential, readRoster, swarmIn } from "../auth/roster.ts";
import type { AskOptions } from "../client/asker.ts";
import type { Swarm } from "../client/swarm.ts";
import { systemClock } from "../clock.ts";
import { loadSettings } from "../config/settings.ts";
import { mayAnswerLater, messageOf, OutcomeUnknownError, WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import { ask } from "./ask.ts";
import { openSwarm } from "./connect.ts";
import type { VerbContext } from "./verb.ts";

/** Whether the leader has the grant; `why`: why not. */
export type Notified = { readonly ok: true } | { readonly ok: false; readonly why: string };

/** Bounds a group as its credential says. Without bounds the group is declared, and may do anything. */
export async function sendGrant(
  context: VerbContext,
  folder: AuthFolder,
  { group = "", grant }: Credential,
): Promise<Notified> {
  return await notifyLeader(
    context,
    folder,
    async (swarm, options) => void (await swarm.setGrant(group, grant ?? {}, options)),
  );
}

/** No agent of the group may join any more: sessions end, and their attempts and slots are taken back at once. */
export async function sendRevoked(
  context: VerbContext,
  folder: AuthFolder,
  { group = "" }: Credential,
): Promise<Notified> {
  return await notifyLeader(
    context,
    folder,
    async (swarm, options) => void (await swarm.setGrant(group, { maxConcurrent: 0 }, options)),
  );
}

/** Names the users of every project that the holder of a credential asks about, as the roster has them.
 *  @returns undefined if the holder asks about no project */
export async function sendUsers(
  context: VerbContext,
  folder: AuthFolder,
  { role, project: only }: Credential,
): Promise<Notified | undefined> {
  const roster = swarmIn(readRoster(folder), context.settings.swarm);
  const declared = declarationsOf(roster, systemClock.now()).projects;
  const every = asksAboutAll.has(role) ? Object.keys(declared) : [];
  const projects = only === undefined ? every : [only];
  if (projects.length === 0) return undefined;
  return await notifyLeader(context, folder, async (swarm, options) => {
    for (const project of projects) {
      const users = declared[project]?.inboxUsers ?? [];
      const inboxUsers = users.length === 0 ? null : users;
      await swarm.setProject(project, { inboxUsers }, options);
    }
  });
}

async function notifyLeader(
  context: VerbContext,
  folder: AuthFolder,
  send: (swarm: Swarm, options: AskOptions) => Promise<void>,
): Promise<Notified> {
  const { settings, signal } = context;
  const cwd = holderFolderOf(folder, settings.swarm, "operator");
  if (!isThere(join(cwd, "waggle.config.json")))
    return { ok: false, why: "there is no credential `operator`" };
  try {
    const swarm = await openSwarm({ settings: loadSettings({ flags: {}, env: {}, cwd }), signal });
    try {
      await sendPatiently(context, (options) => send(swarm, options));
      return { ok: true };
    } finally {
      await swarm.close();
    }
  } catch (error) {
    if (!(error instanceof WaggleError)) throw error;
    return { ok: false, why: mayAnswerLater(error) ? "no coordinator answers" : messageOf(error) };
  }
}

/** Looks for a coordinator for a short time. If a coordinator received the command and did not answer, repeats the
 *  command for longer. To repeat it is safe, because it sets values. */
async function sendPatiently(
  context: VerbContext,
  send: (options: AskOptions) => Promise<void>,
): Promise<void> {
  try {
    await send({ timeoutMs: limits.authNotifyMs });
  } catch (error) {
    if (!(error instanceof OutcomeUnknownError)) throw error;
    await ask(context, send);
  }
}

/** The command that does the same later. */
export function grantCommandOf({ group = "", grant, revokedAt }: Credential): string {
  if (revokedAt !== undefined) return `waggle grant set ${group} --max-concurrent 0`;
  const kinds = (grant?.kinds ?? []).map((kind) => ` --kind ${kind}`).join("");
  const projects = (grant?.projects ?? []).map((project) => ` --project ${project}`).join("");
  return `waggle grant set ${group}${kinds}${projects}`;
}
