// Projects and their users in a snapshot. A user's row belongs to the project above. Counts of live tasks, open
// attempts and slot leases are counted again as these are read.

import {
  emptyCounts,
  emptyLedger,
  type ProjectRow,
  type SwarmState,
  type UserRow,
  waitingCount,
} from "../../state/state.ts";
import { isKept } from "../../state/task-rows.ts";
import { addNew, type Fields, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import { Places, placesIn } from "./places.ts";
import { readProjectSettings } from "./settings.ts";
import { endedCountFields, ledgerFields, readAccount, readEndedCounts, readLedger } from "./values.ts";

export function* projectRows(state: SwarmState): Generator<Row> {
  const idle = placesIn(state.idleProjects);
  const budgeted = placesIn(state.budgetedProjects);
  for (const row of state.projectById.values()) {
    const { project, settings, isPaused, account, virtualTime } = row;
    const ended = endedCountFields(row.counts);
    const ledger = ledgerFields(row.ledger);
    const places = { idle: idle.get(project), budgeted: budgeted.get(project) };
    yield ["project", { project, settings, isPaused, ended, ledger, account, virtualTime, ...places }];
    yield* userRows(row);
  }
}

function* userRows({ userByName, idleUsers }: ProjectRow): Generator<Row> {
  const idle = placesIn(idleUsers);
  for (const { user, counts, account, waitMsSum, waitMsMax, started } of userByName.values()) {
    const ended = endedCountFields(counts);
    yield ["user", { user, ended, account, waitMsSum, waitMsMax, started, idle: idle.get(user) }];
  }
}

/** A project, with the order of its idle users. */
interface ReadProject {
  readonly row: ProjectRow;
  readonly idleUsers: Places<UserRow>;
}

export class ProjectReader {
  readonly #state: SwarmState;
  readonly #projects: ReadProject[] = [];
  readonly #idle = new Places<ProjectRow>("idle projects");
  readonly #budgeted = new Places<ProjectRow>("projects with a budget");

  constructor(state: SwarmState) {
    this.#state = state;
  }

  readProject(fields: Fields): void {
    const { guaranteeMs } = this.#state.policy;
    const row: ProjectRow = {
      project: fields.text("project"),
      settings: readProjectSettings(fields),
      isPaused: fields.flag("isPaused"),
      counts: emptyCounts(),
      ledger: emptyLedger(guaranteeMs),
      openAttempts: 0,
      slotLeases: 0,
      account: fields.within("account", readAccount),
      virtualTime: fields.amount("virtualTime"),
      live: 0,
      usersWaiting: 0,
      userByName: new Map(),
      idleUsers: new Set(),
    };
    const budgetMs = row.settings?.budget?.windowMs;
    fields.within("ended", (ended) => readEndedCounts(ended, row.counts));
    fields.within("ledger", (ledger) => readLedger(ledger, row.ledger, { usageMs: guaranteeMs, budgetMs }));
    this.#idle.put(fields.optionalWhole("idle"), row);
    this.#budgeted.put(fields.optionalWhole("budgeted"), row);
    addNew(this.#state.projectById, row.project, row, "project");
    this.#projects.push({ row, idleUsers: new Places(`idle users of ${row.project}`) });
  }

  readUser(fields: Fields): void {
    const project = this.#projects.at(-1);
    if (project === undefined) refuse("a user stands below no project");
    const row: UserRow = {
      user: fields.text("user"),
      counts: emptyCounts(),
      account: fields.within("account", readAccount),
      live: 0,
      waitMsSum: fields.whole("waitMsSum"),
      waitMsMax: fields.whole("waitMsMax"),
      started: fields.whole("started"),
    };
    fields.within("ended", (ended) => readEndedCounts(ended, row.counts));
    project.idleUsers.put(fields.optionalWhole("idle"), row);
    addNew(project.row.userByName, row.user, row, `user of ${project.row.project}`);
  }

  /** After all rows that projects and users count were read; in steps. */
  *listIdle(): Generator<undefined, void> {
    const { idleProjects, budgetedProjects } = this.#state;
    const isIdle = (row: ProjectRow) => row.live === 0 && !isKept(row);
    const hasBudget = (row: ProjectRow) => row.settings?.budget !== undefined;
    const count = (is: (row: ProjectRow) => boolean) => this.#projects.filter(({ row }) => is(row)).length;
    for (const { project } of this.#idle.inOrder(count(isIdle), isIdle)) idleProjects.add(project);
    for (const { project } of this.#budgeted.inOrder(count(hasBudget), hasBudget))
      budgetedProjects.add(project);
    for (const project of this.#projects) {
      listUsers(project);
      yield;
    }
  }
}

function listUsers({ row, idleUsers }: ReadProject): void {
  let idle = 0;
  for (const user of row.userByName.values()) {
    if (user.live === 0) idle += 1;
    if (waitingCount(user.counts) > 0) row.usersWaiting += 1;
  }
  for (const { user } of idleUsers.inOrder(idle, ({ live }) => live === 0)) row.idleUsers.add(user);
}
