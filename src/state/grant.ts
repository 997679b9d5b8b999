// What an operator grants to a group of agents: the most that its agents may declare, be assigned, hold and charge. A
// grant bounds agents that share a credential, whatever they claim. Pure. Not here: the decision on a join
// (core/decide-grant.ts), the valid values (core/next-settings.ts).

import type { GroupId, Kind, ProjectId, ResourceName } from "../ids.ts";
import type { Labels } from "./needs.ts";

/** An absent field is unbounded. Lists are sorted and name nothing twice; an empty list permits nothing. */
export interface Grant {
  /** Kinds that agents of the group may serve. */
  readonly kinds?: readonly Kind[];
  /** Roles that agents may have. An agent without a role is always permitted. */
  readonly roles?: readonly string[];
  /** Types that agents may have. Without a type an agent is refused: rates count by type. */
  readonly types?: readonly string[];
  /** Labels that agents may have: `gpu=a100`, or `gpu` for any value. */
  readonly labels?: readonly string[];
  /** Projects of the tasks that agents may get, and of the budgets that slots may charge. */
  readonly projects?: readonly ProjectId[];
  /** Resources whose slots agents may hold. */
  readonly resources?: readonly ResourceName[];
  /** Tasks that each agent may have at once, prefetched ones included, ≥ 0. 0: no agent of the group may join. */
  readonly maxConcurrent?: number;
  /** Tokens that one attempt or one slot lease may charge, ≥ 0. A report of more counts as this many. */
  readonly tokens?: number;
}

/** The fields of a grant that a join, a slot or an assignment may break. `group`: the group has no grant. */
export type GrantField = "group" | keyof Grant;

/** What an agent declares at its join. */
export interface Profile {
  readonly kinds: Iterable<Kind>;
  readonly role?: string | undefined;
  readonly agentType?: string | undefined;
  readonly labels?: Labels | undefined;
  readonly maxConcurrent: number;
  readonly prefetch?: number | undefined;
}

/** Where a declaration exceeds a grant. */
export interface Excess {
  readonly field: GrantField;
  /** The declared value that the grant does not include; absent for `group`, and for an agent without a type. */
  readonly value?: string;
}

/** The first declaration beyond the grant. */
export function excessOf(grant: Grant, profile: Profile): Excess | undefined {
  const { kinds, roles, types, labels, maxConcurrent } = grant;
  const { prefetch = 0 } = profile;
  if (maxConcurrent !== undefined && profile.maxConcurrent + prefetch > maxConcurrent) {
    const more = prefetch === 0 ? "" : ` and ${prefetch} prefetched`;
    return { field: "maxConcurrent", value: `${profile.maxConcurrent}${more}` };
  }
  if (kinds !== undefined)
    for (const kind of profile.kinds) if (!kinds.includes(kind)) return { field: "kinds", value: kind };
  const { role, agentType } = profile;
  if (roles !== undefined && role !== undefined && !roles.includes(role))
    return { field: "roles", value: role };
  if (types !== undefined && (agentType === undefined || !types.includes(agentType)))
    return { field: "types", ...(agentType === undefined ? {} : { value: agentType }) };
  if (labels !== undefined)
    for (const [name, value] of Object.entries(profile.labels ?? {})) {
      const label = `${name}=${value}`;
      if (!labels.includes(name) && !labels.includes(label)) return { field: "labels", value: label };
    }
  return undefined;
}

/** Tokens to charge for a report: no more than the grant permits. */
export function chargeable<Tokens extends number | undefined>(
  grant: Grant | undefined,
  tokens: Tokens,
): Tokens {
  const max = grant?.tokens;
  return tokens === undefined || max === undefined || tokens <= max ? tokens : (max as Tokens);
}

/**
 * The groups whose agents may have a project's tasks. Projects with the same groups share one key, so that the planner
 * ranks their agents once.
 */
export interface Access {
  readonly key: string;
  admits(group: GroupId): boolean;
}

/** All grants, by group. Immutable: each change makes another table, so that readers compare by identity. */
export class Grants {
  static readonly none = new Grants(new Map());
  readonly byGroup: ReadonlyMap<GroupId, Grant>;
  /** Groups with a list of projects. */
  readonly #bounded: ReadonlyMap<GroupId, ReadonlySet<ProjectId>>;
  readonly #accessByProject = new Map<ProjectId, Access>();
  /** Access of all projects that no grant names. */
  readonly #elsewhere: Access | undefined;
  readonly #accesses: number;

  private constructor(byGroup: ReadonlyMap<GroupId, Grant>) {
    this.byGroup = byGroup;
    const bounded = new Map<GroupId, ReadonlySet<ProjectId>>();
    const groupsByProject = new Map<ProjectId, GroupId[]>();
    for (const [group, { projects }] of byGroup) {
      if (projects === undefined) continue;
      bounded.set(group, new Set(projects));
      for (const project of projects) {
        const groups = groupsByProject.get(project);
        if (groups === undefined) groupsByProject.set(project, [group]);
        else groups.push(group);
      }
    }
    this.#bounded = bounded;
    const accessByKey = new Map<string, Access>();
    const accessFor = (groups: readonly GroupId[]): Access => {
      const key = groups.toSorted().join(" ");
      const known = accessByKey.get(key);
      if (known !== undefined) return known;
      const included = new Set(groups);
      const access: Access = { key, admits: (group) => included.has(group) || !bounded.has(group) };
      accessByKey.set(key, access);
      accessByKey.set(key, access);
      return access;
    };
    if (bounded.size > 0) this.#elsewhere = accessFor([]);
    for (const [project, groups] of groupsByProject) this.#accessByProject.set(project, accessFor(groups));
    this.#accesses = accessByKey.size;
  }

  /** Number of different keys of access; 0 while no grant bounds projects. */
  get accesses(): number {
    return this.#accesses;
  }

  /** The table with the grant of a group replaced; undefined: removed. */
  with(group: GroupId, grant: Grant | undefined): Grants {
    const byGroup = new Map(this.byGroup);
    if (grant === undefined) byGroup.delete(group);
    else byGroup.set(group, grant);
    return new Grants(byGroup);
  }

  of(group: GroupId): Grant | undefined {
    return this.byGroup.get(group);
  }

  /** Undefined while no grant bounds projects: agents of every group may have the project's tasks. */
  accessOf(project: ProjectId): Access | undefined {
    return this.#elsewhere && (this.#accessByProject.get(project) ?? this.#elsewhere);
  }

  /** Whether agents of the group may have tasks of the project, and charge it. */
  includes(group: GroupId, project: ProjectId): boolean {
    return this.#bounded.get(group)?.has(project) ?? true;
  }
}
