// Answers `settings`: all settings, or the settings of one name, as many as fit a message.

import type { ProjectId } from "../ids.ts";
import type { SettingsResponse } from "../protocol/settings-schemas.ts";
import { alphaSettingsAt } from "../scheduling/slot-planner.ts";
import {
  defaultKindSettings,
  defaultProjectSettings,
  type KindRow,
  type ProjectRow,
  type ResourceRow,
  type SwarmState,
} from "../state/state.ts";
import { rowsWithin } from "./fitting.ts";

export interface SettingsSources {
  /** Only this project and the policy. Absent: the whole swarm. */
  readonly project?: ProjectId;
  /** Only settings of this name. */
  readonly name: string | undefined;
  /** Maximum size of the whole answer. */
  readonly bytesMax: number;
  readonly isStale: boolean;
}

/** All settings if they fit a message, else as many as fit, with counts of omitted rows. */
export function settingsOf(state: SwarmState, sources: SettingsSources): SettingsResponse {
  const { name, isStale, project } = sources;
  const bytesMax = sources.bytesMax / 6;
  const projects = fitting(
    settingRows(state.projectById, project ?? name, (row) =>
      projectView(row, (project ?? name) !== undefined),
    ),
    bytesMax,
  );
  const ofSwarm = <Row>(rows: ReadonlyMap<string, Row>) =>
    project === undefined ? rows : new Map<string, Row>();
  const kinds = fitting(settingRows(ofSwarm(state.kindByName), name, kindView), bytesMax);
  const resources = fitting(
    settingRows(ofSwarm(state.resourceByName), name, (row) => resourceView(state, row)),
    bytesMax,
  );
  const rates = fitting(
    settingRows(ofSwarm(state.ratesByType), name, (rows) =>
      rows.map(({ agentType, settings }) => ({ type: agentType, settings })),
    ).flat(),
    bytesMax,
  );
  const grants = fitting(
    [...state.grants.byGroup]
      .filter(([group]) => project === undefined && (name === undefined || group === name))
      .map(([group, settings]) => ({ group, settings })),
    bytesMax,
  );
  const omitted = {
    projects: projects.omitted,
    kinds: kinds.omitted,
    resources: resources.omitted,
    rates: rates.omitted,
    grants: grants.omitted,
  };
  return {
    term: state.term,
    idx: state.idx,
    at: state.at,
    ...(isStale ? { stale: true as const } : {}),
    paused: state.isPaused,
    policy: state.policy,
    projects: projects.rows,
    kinds: kinds.rows,
    resources: resources.rows,
    rates: rates.rows,
    grants: grants.rows,
    defaults: { project: defaultProjectSettings, kind: defaultKindSettings },
    ...(Object.values(omitted).some((count) => count > 0) ? { omitted } : {}),
  };
}

type ProjectView = SettingsResponse["projects"][number];
type KindView = SettingsResponse["kinds"][number];

/** A project without settings is shown only when asked for by name. */
function projectView({ project, settings, isPaused }: ProjectRow, isNamed: boolean): ProjectView | undefined {
  if (settings === undefined && !isPaused && !isNamed) return undefined;
  return {
    project,
    paused: isPaused,
    declared: settings !== undefined,
    settings: settings ?? defaultProjectSettings,
  };
}

function kindView({ kind, settings }: KindRow): KindView | undefined {
  return settings === undefined ? undefined : { kind, settings };
}

function resourceView(state: SwarmState, row: ResourceRow): SettingsResponse["resources"][number] {
  return { resource: row.resource, alpha: alphaSettingsAt(state, row), settings: row.settings };
}

function settingRows<Row, View>(
  rowByName: ReadonlyMap<string, Row>,
  name: string | undefined,
  view: (row: Row) => View | undefined,
): View[] {
  const named = name === undefined ? undefined : rowByName.get(name);
  const rows = name === undefined ? [...rowByName.values()] : named === undefined ? [] : [named];
  return rows.map(view).filter((each) => each !== undefined);
}

function fitting<View>(views: readonly View[], bytesMax: number): { rows: View[]; omitted: number } {
  const { rows } = rowsWithin(views, bytesMax);
  return { rows, omitted: views.length - rows.length };
}
