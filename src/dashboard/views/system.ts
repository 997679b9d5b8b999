// The page of the system: broker, journal, coordinators, the dashboard itself, and every setting with its origin.

import { defined } from "../../defined.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import type { SettingsResponse } from "../../protocol/settings-schemas.ts";
import { defaultPolicy } from "../../state/policy.ts";
import { commandOf } from "../command-text.ts";
import type { System } from "../wire.ts";
import { chartViews } from "./charts.ts";

export interface SystemFacts {
  readonly status: StatusResponse;
  readonly settings: SettingsResponse;
  readonly broker: System["broker"];
  readonly dashboard: System["dashboard"];
}

export function systemView({ status, settings, broker, dashboard }: SystemFacts): System {
  const { id, durability, sentence, bytes, bytesMax, auditFirstIdx, base, baseFailure } = status.journal;
  const { foreignRecords, verified } = status.journal;
  const { append, decision } = status.observed?.timings ?? {};
  const process = status.observed?.process;
  return {
    broker,
    journal: {
      ...{ id, durability, sentence, bytes, firstIdx: auditFirstIdx, lastIdx: status.idx },
      ...defined({ bytesMax, base, baseFailure, foreignRecords: foreignRecords?.count }),
      ...(verified === undefined
        ? {}
        : { verified: { idx: verified.idx, ...defined({ at: verified.at, fault: verified.fault?.text }) } }),
    },
    coordinators: {
      ...{ leader: status.leader, term: status.term, standbys: status.standbys ?? [] },
      ...defined({ appendP50Ms: append?.p50, appendP99Ms: append?.p99 }),
      ...defined({ decisionP50Ms: decision?.p50, decisionP99Ms: decision?.p99, process }),
    },
    counters: status.counters,
    dashboard,
    settings: settingRows(settings),
    charts: chartViews(status),
  };
}

type Row = System["settings"][number];

const SET = "set by an operator";
const DEFAULT = "default";

function settingRows({ policy, projects, kinds, resources, rates, defaults }: SettingsResponse): Row[] {
  const policyRows = rowsOf(policy, defaultPolicy, { area: "policy", command: commandOf("policy", "show") });
  const projectRows = projects.flatMap(({ project, settings }) => {
    const place = { area: "project", name: project, command: commandOf("project", "show", project) } as const;
    return rowsOf(settings, defaults.project, place);
  });
  const kindRows = kinds.flatMap(({ kind, settings }) => {
    const place = { area: "kind", name: kind, command: commandOf("kind", "show", kind) } as const;
    return rowsOf(settings, defaults.kind, place);
  });
  const resourceRows = resources.flatMap(({ resource, settings }) => {
    const command = commandOf("resource", "show", resource);
    return rowsOf(settings, {}, { area: "resource", name: resource, command });
  });
  const rateRows = rates.flatMap(({ type, settings }) =>
    rowsOf(settings, {}, { area: "rate", name: type, command: commandOf("rate", "show", type) }),
  );
  return [...policyRows, ...projectRows, ...kindRows, ...resourceRows, ...rateRows];
}

function rowsOf(settings: object, usual: object, place: Pick<Row, "area" | "name" | "command">): Row[] {
  const usualByName = new Map(Object.entries(usual).map(([name, value]) => [name, textOf(value)]));
  return Object.entries(settings).flatMap(([setting, value]) => {
    if (value === undefined) return [];
    const text = textOf(value);
    return [{ ...place, setting, value: text, origin: usualByName.get(setting) === text ? DEFAULT : SET }];
  });
}

/** `tokens 100, windowMs 60000, mode wait`. */
function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value)
    .map(([name, part]) => `${name} ${String(part)}`)
    .join(", ");
}
